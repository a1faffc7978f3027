package org.apache.kafka.coordinator.group;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.stream.Collectors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.streams.StreamsGroup;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.TasksTuple;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;

/** Streams groups: their steps as calls of Kafka's coordinator service, its answers, their states. What has an order is one text. */
final class StreamsRequests {
    static final Set<String> KNOWN = Set.of("streams_heartbeat", "describe_streams_groups");
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private final VirtualBroker broker;

    StreamsRequests(VirtualBroker broker) {
        this.broker = broker;
    }

    CompletableFuture<ObjectNode> send(JsonNode step) {
        return step.get("op").asText().equals("streams_heartbeat") ? heartbeat(step) : describe(step);
    }

    /** Kafka's usual text of an error is left out. */
    private static ObjectNode error(short code, String message) {
        boolean usual = message == null || message.equals(Errors.forCode(code).message());
        return JSON.objectNode().put("error", Errors.forCode(code).name()).put("message", usual ? null : message);
    }

    private static <T> List<T> list(JsonNode array, Function<JsonNode, T> element) {
        if (array == null || array.isNull()) return null;
        List<T> values = new ArrayList<>();
        array.forEach(value -> values.add(element.apply(value)));
        return values;
    }

    private static List<Integer> numbers(JsonNode array) {
        return list(array, JsonNode::asInt);
    }

    private static List<Short> indexes(JsonNode array) {
        return list(array, value -> (short) value.asInt());
    }

    // The request.

    private CompletableFuture<ObjectNode> heartbeat(JsonNode step) {
        StreamsGroupHeartbeatRequestData request = new StreamsGroupHeartbeatRequestData().setGroupId(Requests.group(step))
            .setMemberId(Requests.text(step, "member")).setMemberEpoch(step.get("epoch").asInt())
            .setEndpointInformationEpoch(step.path("endpoint_epoch").asInt(0)).setInstanceId(Requests.text(step, "instance"))
            .setRackId(Requests.text(step, "rack")).setRebalanceTimeoutMs(step.path("rebalance").asInt(-1))
            .setTopology(step.hasNonNull("topology") ? topology(step.get("topology")) : null)
            .setActiveTasks(list(step.get("active"), StreamsRequests::taskIds))
            .setStandbyTasks(list(step.get("standby"), StreamsRequests::taskIds))
            .setWarmupTasks(list(step.get("warmup"), StreamsRequests::taskIds))
            .setProcessId(Requests.text(step, "process")).setClientTags(list(step.get("tags"), StreamsRequests::keyValue))
            .setTaskOffsets(list(step.get("offsets"), StreamsRequests::taskOffset))
            .setTaskEndOffsets(list(step.get("end_offsets"), StreamsRequests::taskOffset))
            .setShutdownApplication(step.path("shutdown").asBoolean(false));
        if (step.hasNonNull("endpoint")) {
            request.setUserEndpoint(new StreamsGroupHeartbeatRequestData.Endpoint()
                .setHost(step.get("endpoint").get(0).asText()).setPort(step.get("endpoint").get(1).asInt()));
        }
        return broker.service.streamsGroupHeartbeat(Requests.context(step, ApiKeys.STREAMS_GROUP_HEARTBEAT, 0), request).thenApply(result -> {
            StreamsGroupHeartbeatResponseData reply = result.data();
            ObjectNode node = error(reply.errorCode(), reply.errorMessage());
            if (reply.errorCode() != 0) return node;
            node.put("member", reply.memberId()).put("epoch", reply.memberEpoch()).put("heartbeat_interval_ms", reply.heartbeatIntervalMs());
            node.put("status", joined(" | ", reply.status(), status -> status.statusCode() + " " + status.statusDetail()));
            node.put("active", answered(reply.activeTasks())).put("standby", answered(reply.standbyTasks()));
            node.put("warmup", answered(reply.warmupTasks())).put("endpoint_epoch", reply.endpointInformationEpoch());
            node.put("endpoints", joined(" | ", reply.partitionsByUserEndpoint(), StreamsRequests::endpoint));
            node.put("creatable", joined(" ", result.creatableTopics().values(), StreamsRequests::creatable));
            node.put("unused", reply.acceptableRecoveryLag() + reply.taskOffsetIntervalMs());
            return node;
        });
    }

    private static StreamsGroupHeartbeatRequestData.Topology topology(JsonNode node) {
        return new StreamsGroupHeartbeatRequestData.Topology().setEpoch(node.get("epoch").asInt())
            .setSubtopologies(list(node.get("subtopologies"), each -> new StreamsGroupHeartbeatRequestData.Subtopology()
                .setSubtopologyId(each.get("id").asText()).setSourceTopics(Requests.strings(each.get("sources"), List.of()))
                .setSourceTopicRegex(Requests.strings(each.get("regex"), List.of()))
                .setStateChangelogTopics(list(each.get("changelogs"), StreamsRequests::topicInfo))
                .setRepartitionSinkTopics(Requests.strings(each.get("sinks"), List.of()))
                .setRepartitionSourceTopics(list(each.get("repartitions"), StreamsRequests::topicInfo))
                .setCopartitionGroups(list(each.get("copartitioned"), group -> new StreamsGroupHeartbeatRequestData.CopartitionGroup()
                    .setSourceTopics(indexes(group.get(0))).setRepartitionSourceTopics(indexes(group.get(1)))))));
    }

    private static StreamsGroupHeartbeatRequestData.TopicInfo topicInfo(JsonNode node) {
        return new StreamsGroupHeartbeatRequestData.TopicInfo().setName(node.get(0).asText()).setPartitions(node.get(1).asInt())
            .setReplicationFactor((short) node.get(2).asInt()).setTopicConfigs(list(node.get(3), StreamsRequests::keyValue));
    }

    private static StreamsGroupHeartbeatRequestData.KeyValue keyValue(JsonNode node) {
        return new StreamsGroupHeartbeatRequestData.KeyValue().setKey(node.get(0).asText()).setValue(node.get(1).asText());
    }

    private static StreamsGroupHeartbeatRequestData.TaskIds taskIds(JsonNode node) {
        return new StreamsGroupHeartbeatRequestData.TaskIds().setSubtopologyId(node.get(0).asText()).setPartitions(numbers(node.get(1)));
    }

    private static StreamsGroupHeartbeatRequestData.TaskOffset taskOffset(JsonNode node) {
        return new StreamsGroupHeartbeatRequestData.TaskOffset().setSubtopologyId(node.get(0).asText())
            .setPartition(node.get(1).asInt()).setOffset(node.get(2).asLong());
    }

    // The answer.

    private static <T> String joined(String separator, Collection<T> values, Function<T, String> shown) {
        return values == null ? null : values.stream().map(shown).collect(Collectors.joining(separator));
    }

    private static String shown(Collection<?> numbers) {
        return joined(",", numbers, Object::toString);
    }

    private static String answered(List<StreamsGroupHeartbeatResponseData.TaskIds> tasks) {
        return joined(" ", tasks, ids -> ids.subtopologyId() + ":" + shown(ids.partitions()));
    }

    /** Over more than one subtopology the order of what is active is that of a map with a random salt. */
    private static String endpoint(StreamsGroupHeartbeatResponseData.EndpointToPartitions found) {
        Function<StreamsGroupHeartbeatResponseData.TopicPartition, String> topic = each -> each.topic() + ":" + shown(each.partitions());
        String active = found.activePartitions().stream().map(topic).sorted().collect(Collectors.joining(" "));
        return found.userEndpoint().host() + ":" + found.userEndpoint().port() + " active " + active
            + " standby " + joined(" ", found.standbyPartitions(), topic);
    }

    private static String creatable(CreatableTopic topic) {
        return topic.name() + "/" + topic.numPartitions() + "/" + topic.replicationFactor() + "/"
            + topic.configs().stream().map(each -> each.name() + "=" + each.value()).collect(Collectors.joining(","));
    }

    private CompletableFuture<ObjectNode> describe(JsonNode step) {
        return broker.service.streamsGroupDescribe(Requests.context(step, ApiKeys.STREAMS_GROUP_DESCRIBE, 0),
            Requests.strings(step.get("groups"), List.of())).thenApply(groups -> {
                ObjectNode node = JSON.objectNode();
                ArrayNode list = node.putArray("groups");
                groups.forEach(group -> {
                    ObjectNode entry = error(group.errorCode(), group.errorMessage()).put("id", group.groupId());
                    list.add(entry);
                    if (group.errorCode() != 0) return;
                    entry.put("state", group.groupState()).put("epoch", group.groupEpoch()).put("assignment_epoch", group.assignmentEpoch());
                    entry.put("topology", group.topology().epoch() + " " + joined(" | ", group.topology().subtopologies(), StreamsRequests::described));
                    entry.put("members", joined(" | ", group.members(), StreamsRequests::described));
                });
                return node;
            });
    }

    private static String described(StreamsGroupDescribeResponseData.Subtopology each) {
        return each.subtopologyId() + " reads " + each.sourceTopics() + " and " + joined(" ", each.repartitionSourceTopics(), StreamsRequests::described)
            + " writes " + each.repartitionSinkTopics() + " keeps " + joined(" ", each.stateChangelogTopics(), StreamsRequests::described);
    }

    private static String described(StreamsGroupDescribeResponseData.TopicInfo topic) {
        return topic.name() + "/" + topic.partitions() + "/" + topic.replicationFactor() + "/" + pairs(topic.topicConfigs());
    }

    private static String pairs(List<StreamsGroupDescribeResponseData.KeyValue> pairs) {
        return joined(",", pairs, each -> each.key() + "=" + each.value());
    }

    private static String described(StreamsGroupDescribeResponseData.Member member) {
        var endpoint = member.userEndpoint();
        return member.memberId() + " epoch " + member.memberEpoch() + " instance " + member.instanceId() + " rack " + member.rackId()
            + " client " + member.clientId() + "@" + member.clientHost() + " topology " + member.topologyEpoch()
            + " process " + member.processId() + " endpoint " + (endpoint == null ? null : endpoint.host() + ":" + endpoint.port())
            + " tags " + pairs(member.clientTags()) + " has " + described(member.assignment())
            + " wants " + described(member.targetAssignment()) + " " + member.taskOffsets() + member.taskEndOffsets() + member.isClassic();
    }

    private static String described(StreamsGroupDescribeResponseData.Assignment tasks) {
        Function<List<StreamsGroupDescribeResponseData.TaskIds>, String> kind =
            each -> joined(" ", each, ids -> ids.subtopologyId() + ":" + shown(ids.partitions()));
        return kind.apply(tasks.activeTasks()) + ";" + kind.apply(tasks.standbyTasks()) + ";" + kind.apply(tasks.warmupTasks());
    }

    // The state.

    static void show(ObjectNode node, StreamsGroup group) {
        node.put("epoch", group.groupEpoch()).put("assignment_epoch", group.assignmentEpoch());
        node.put("hash", Long.toString(group.metadataHash())).put("validated", group.validatedTopologyEpoch());
        node.put("topology", group.topology().map(topology -> topology.topologyEpoch()).orElse(null));
        node.put("configs", new TreeMap<>(group.lastAssignmentConfigs()).toString()).put("endpoint_epoch", group.endpointInformationEpoch());
        node.put("shutdown", group.getShutdownRequestMemberId().orElse(null));
        ArrayNode details = node.putArray("details");
        for (String id : new TreeSet<>(group.members().keySet())) {
            StreamsGroupMember member = group.members().get(id);
            ObjectNode detail = details.addObject().put("id", id);
            detail.put("epoch", member.memberEpoch()).put("previous_epoch", member.previousMemberEpoch());
            detail.put("state", member.state() == null ? null : member.state().name()).put("process", member.processId());
            detail.put("rebalance", member.rebalanceTimeoutMs()).put("topology", member.topologyEpoch());
            detail.put("assigned", tasks(member.assignedTasks())).put("revoking", tasks(member.tasksPendingRevocation()));
            TasksTuple target = group.targetAssignment().get(id);
            detail.put("target", target == null ? null : sorted(target.activeTasks()) + sorted(target.standbyTasks()) + sorted(target.warmupTasks()));
        }
    }

    private static String tasks(TasksTupleWithEpochs tasks) {
        if (tasks == null) return null;
        TreeMap<String, Map<Integer, Integer>> active = new TreeMap<>();
        tasks.activeTasksWithEpochs().forEach((id, epochs) -> active.put(id, new TreeMap<>(epochs)));
        return active + sorted(tasks.standbyTasks()) + sorted(tasks.warmupTasks());
    }

    private static String sorted(Map<String, Set<Integer>> tasks) {
        TreeMap<String, Set<Integer>> sorted = new TreeMap<>();
        tasks.forEach((id, numbers) -> sorted.put(id, new TreeSet<>(numbers)));
        return sorted.toString();
    }
}
