package org.apache.kafka.coordinator.group;

import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.BufferSupplier;

/** The steps of a sequence as calls of Kafka's coordinator service, and its answers in the words of the "expect" lists. */
final class Requests {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final BufferSupplier BUFFERS = BufferSupplier.NO_CACHING;
    /** Without a host name: Kafka writes "/127.0.0.1" into its records. */
    private static final InetAddress LOOPBACK = loopback();
    private final VirtualBroker broker;

    Requests(VirtualBroker broker) {
        this.broker = broker;
    }

    private static InetAddress loopback() {
        try {
            return InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
        } catch (java.net.UnknownHostException e) {
            throw new IllegalStateException(e);
        }
    }

    CompletableFuture<ObjectNode> send(JsonNode step) {
        return switch (step.get("op").asText()) {
            case "join" -> join(step);
            case "sync" -> sync(step);
            case "heartbeat" -> heartbeat(step);
            case "leave" -> leave(step);
            case "cg_heartbeat" -> consumerHeartbeat(step);
            case "offset_commit" -> commit(step);
            case "txn_offset_commit" -> commitInTransaction(step);
            case "end_txn" -> endTransaction(step);
            case "offset_fetch" -> fetch(step);
            case "offset_delete" -> deleteOffsets(step);
            case "delete_groups" -> deleteGroups(step);
            case "describe_groups" -> describe(step);
            case "describe_consumer_groups" -> describeConsumer(step);
            case "list_groups" -> list(step);
            default -> event(step);
        };
    }

    private CompletableFuture<ObjectNode> event(JsonNode step) {
        switch (step.get("op").asText()) {
            case "set_topic" -> broker.setTopic(text(step, "topic"), Uuid.fromString(text(step, "id")), step.get("partitions").asInt());
            case "delete_topic" -> broker.deleteTopic(text(step, "topic"));
            case "reload" -> broker.reload();
            case "group_config" -> {
                java.util.Properties properties = new java.util.Properties();
                step.get("config").fields().forEachRemaining(entry -> properties.put(entry.getKey(), entry.getValue().asText()));
                broker.service.updateGroupConfig(group(step), properties);
            }
            default -> {
                return broker.newer(step);
            }
        }
        return CompletableFuture.completedFuture(error(Errors.NONE.code()));
    }

    // Small helpers.

    static String text(JsonNode node, String name) {
        return node.hasNonNull(name) ? node.get(name).asText() : null;
    }

    private static String text(JsonNode node, String name, String missing) {
        return node.has(name) ? text(node, name) : missing;
    }

    private static int number(JsonNode node, String name, int missing) {
        return node.hasNonNull(name) ? node.get(name).asInt() : missing;
    }

    static String group(JsonNode step) {
        return text(step, "group", "g");
    }

    static List<String> strings(JsonNode array, List<String> missing) {
        if (array == null || array.isNull()) return missing;
        List<String> values = new ArrayList<>();
        array.forEach(value -> values.add(value.asText()));
        return values;
    }

    private static ObjectNode error(short code) {
        return JSON.objectNode().put("error", Errors.forCode(code).name());
    }

    static RequestContext context(JsonNode step, ApiKeys api, int version) {
        return new RequestContext(new RequestHeader(api, (short) number(step, "v", version), "c", 0), "1",
            LOOPBACK, KafkaPrincipal.ANONYMOUS, ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT),
            SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
    }

    private static String topic(String partition) {
        return partition.substring(0, partition.lastIndexOf('-'));
    }

    private static int index(String partition) {
        return Integer.parseInt(partition.substring(partition.lastIndexOf('-') + 1));
    }

    private static Map<String, List<Integer>> byTopic(Iterable<String> partitions) {
        Map<String, List<Integer>> topics = new LinkedHashMap<>();
        partitions.forEach(p -> topics.computeIfAbsent(topic(p), t -> new ArrayList<>()).add(index(p)));
        return topics;
    }

    static byte[] subscription(JsonNode step) {
        if (step.has("metadata_hex")) return HexFormat.of().parseHex(step.get("metadata_hex").asText());
        ConsumerProtocolSubscription data = new ConsumerProtocolSubscription().setTopics(strings(step.get("topics"), List.of("t")));
        byTopic(strings(step.get("owned"), List.of())).forEach((topic, partitions) -> data.ownedPartitions().add(
            new ConsumerProtocolSubscription.TopicPartition().setTopic(topic).setPartitions(partitions)));
        data.setRackId(text(step, "rack"));
        return bytes(MessageUtil.toVersionPrefixedByteBuffer((short) 3, data));
    }

    static byte[] assignment(List<String> partitions) {
        ConsumerProtocolAssignment data = new ConsumerProtocolAssignment();
        byTopic(partitions).forEach((topic, numbers) -> data.assignedPartitions().add(
            new ConsumerProtocolAssignment.TopicPartition().setTopic(topic).setPartitions(numbers)));
        return bytes(MessageUtil.toVersionPrefixedByteBuffer((short) 3, data));
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    // The classic protocol.

    static JoinGroupRequestData.JoinGroupRequestProtocolCollection protocols(JsonNode step) {
        JoinGroupRequestData.JoinGroupRequestProtocolCollection protocols = new JoinGroupRequestData.JoinGroupRequestProtocolCollection();
        strings(step.get("protocols"), List.of("range")).forEach(name -> protocols.add(
            new JoinGroupRequestData.JoinGroupRequestProtocol().setName(name).setMetadata(subscription(step))));
        return protocols;
    }

    private CompletableFuture<ObjectNode> join(JsonNode step) {
        JoinGroupRequestData request = new JoinGroupRequestData().setGroupId(group(step)).setMemberId(text(step, "member"))
            .setGroupInstanceId(text(step, "instance")).setSessionTimeoutMs(number(step, "session", 10000))
            .setRebalanceTimeoutMs(number(step, "rebalance", 30000)).setProtocolType(text(step, "protocol_type", "consumer"))
            .setProtocols(protocols(step));
        return broker.service.joinGroup(context(step, ApiKeys.JOIN_GROUP, 9), request, BUFFERS).thenApply(reply -> {
            ObjectNode node = error(reply.errorCode()).put("member", reply.memberId());
            if (reply.errorCode() != 0) return node;
            node.put("generation", reply.generationId()).put("protocol_type", reply.protocolType()).put("protocol", reply.protocolName());
            node.put("leader", reply.leader()).put("skip_assignment", reply.skipAssignment());
            ArrayNode members = node.putArray("members");
            reply.members().forEach(member -> members.add(member.memberId()));
            return node;
        });
    }

    private CompletableFuture<ObjectNode> sync(JsonNode step) {
        SyncGroupRequestData request = new SyncGroupRequestData().setGroupId(group(step)).setMemberId(text(step, "member"))
            .setGroupInstanceId(text(step, "instance")).setGenerationId(step.get("generation").asInt())
            .setProtocolName(text(step, "protocol")).setProtocolType(text(step, "protocol_type"));
        if (step.has("assignments")) {
            step.get("assignments").fields().forEachRemaining(entry -> request.assignments().add(
                new SyncGroupRequestData.SyncGroupRequestAssignment().setMemberId(entry.getKey())
                    .setAssignment(entry.getValue().isTextual() ? HexFormat.of().parseHex(entry.getValue().asText())
                        : assignment(strings(entry.getValue(), List.of())))));
        }
        return broker.service.syncGroup(context(step, ApiKeys.SYNC_GROUP, 5), request, BUFFERS).thenApply(reply -> {
            ObjectNode node = error(reply.errorCode());
            if (reply.errorCode() != 0) return node;
            node.put("protocol", reply.protocolName()).put("protocol_type", reply.protocolType());
            node.set("assignment", Dump.assignment(reply.assignment()));
            return node;
        });
    }

    private CompletableFuture<ObjectNode> heartbeat(JsonNode step) {
        HeartbeatRequestData request = new HeartbeatRequestData().setGroupId(group(step)).setMemberId(text(step, "member"))
            .setGroupInstanceId(text(step, "instance")).setGenerationId(step.get("generation").asInt());
        return broker.service.heartbeat(context(step, ApiKeys.HEARTBEAT, 4), request).thenApply(reply -> error(reply.errorCode()));
    }

    private CompletableFuture<ObjectNode> leave(JsonNode step) {
        boolean single = number(step, "v", 5) < 3;
        LeaveGroupRequestData request = new LeaveGroupRequestData().setGroupId(group(step));
        // The API layer turns the one member of old versions into a list of one.
        (single ? List.of(step) : step.get("members")).forEach(member -> request.members().add(
            new LeaveGroupRequestData.MemberIdentity().setMemberId(text(member, "member", "")).setGroupInstanceId(text(member, "instance"))));
        return broker.service.leaveGroup(context(step, ApiKeys.LEAVE_GROUP, 5), request).thenApply(reply -> {
            if (single && reply.errorCode() == 0) return error(reply.members().get(0).errorCode());
            ObjectNode node = error(reply.errorCode());
            if (single || reply.errorCode() != 0) return node;
            ArrayNode members = node.putArray("members");
            reply.members().forEach(member -> {
                ObjectNode entry = members.addObject().put("member", member.memberId());
                if (member.groupInstanceId() != null) entry.put("instance", member.groupInstanceId());
                entry.put("error", Errors.forCode(member.errorCode()).name());
            });
            return node;
        });
    }

    // The consumer protocol.

    private CompletableFuture<ObjectNode> consumerHeartbeat(JsonNode step) {
        ConsumerGroupHeartbeatRequestData request = new ConsumerGroupHeartbeatRequestData().setGroupId(group(step))
            .setMemberId(text(step, "member")).setMemberEpoch(step.get("epoch").asInt()).setInstanceId(text(step, "instance"))
            .setRackId(text(step, "rack")).setRebalanceTimeoutMs(number(step, "rebalance", -1))
            .setSubscribedTopicNames(strings(step.get("topics"), null)).setSubscribedTopicRegex(text(step, "regex"))
            .setServerAssignor(text(step, "assignor"));
        if (step.hasNonNull("owned")) {
            List<ConsumerGroupHeartbeatRequestData.TopicPartitions> owned = new ArrayList<>();
            byTopic(strings(step.get("owned"), List.of())).forEach((topic, numbers) -> owned.add(
                new ConsumerGroupHeartbeatRequestData.TopicPartitions().setTopicId(id(topic)).setPartitions(numbers)));
            request.setTopicPartitions(owned);
        }
        int epoch = request.memberEpoch();
        return broker.service.consumerGroupHeartbeat(context(step, ApiKeys.CONSUMER_GROUP_HEARTBEAT, 1), request).thenApply(reply -> {
            ObjectNode node = error(reply.errorCode()).put("message", reply.errorMessage());
            if (reply.errorCode() != 0) return node;
            node.put("member", reply.memberId()).put("epoch", reply.memberEpoch());
            if (epoch < 0) return node;
            node.put("heartbeat_interval_ms", reply.heartbeatIntervalMs());
            node.set("assignment", reply.assignment() == null ? null : partitions(reply.assignment().topicPartitions().stream()
                .collect(LinkedHashMap::new, (map, topic) -> map.put(topic.topicId(), topic.partitions()), LinkedHashMap::putAll)));
            return node;
        });
    }

    private Uuid id(String topic) {
        return broker.latestIds.getOrDefault(topic, new Uuid(7L, topic.hashCode()));
    }

    private ArrayNode partitions(Map<Uuid, List<Integer>> topics) {
        TreeSet<String> sorted = new TreeSet<>();
        topics.forEach((topic, numbers) -> numbers.forEach(n -> sorted.add(broker.topicNames.getOrDefault(topic, topic.toString()) + "-" + n)));
        return Dump.strings(sorted);
    }

    private CompletableFuture<ObjectNode> describeConsumer(JsonNode step) {
        RequestContext context = context(step, ApiKeys.CONSUMER_GROUP_DESCRIBE, 1);
        return broker.service.consumerGroupDescribe(context, strings(step.get("groups"), List.of())).thenApply(groups -> {
            ObjectNode node = JSON.objectNode();
            ArrayNode list = node.putArray("groups");
            groups.forEach(group -> {
                ObjectNode entry = list.addObject().put("id", group.groupId()).put("error", Errors.forCode(group.errorCode()).name());
                entry.put("message", group.errorMessage());
                if (group.errorCode() != 0) return;
                entry.put("state", group.groupState()).put("epoch", group.groupEpoch()).put("assignment_epoch", group.assignmentEpoch());
                entry.put("assignor", group.assignorName());
                for (String name : List.of("assignments", "targets", "epochs", "member_types")) entry.putObject(name);
                group.members().forEach(member -> {
                    ((ObjectNode) entry.get("assignments")).set(member.memberId(), described(member.assignment()));
                    ((ObjectNode) entry.get("targets")).set(member.memberId(), described(member.targetAssignment()));
                    ((ObjectNode) entry.get("epochs")).put(member.memberId(), member.memberEpoch());
                    ((ObjectNode) entry.get("member_types")).put(member.memberId(), member.memberType());
                });
            });
            return node;
        });
    }

    private ArrayNode described(ConsumerGroupDescribeResponseData.Assignment assignment) {
        Map<Uuid, List<Integer>> topics = new LinkedHashMap<>();
        assignment.topicPartitions().forEach(topic -> topics.put(topic.topicId(), topic.partitions()));
        return partitions(topics);
    }

    // Offsets.

    private static String metadata(JsonNode step, String partition) {
        String text = step.has("metadata") ? text(step.get("metadata"), partition) : null;
        return text != null && text.matches("x\\*\\d+") ? "x".repeat(Integer.parseInt(text.substring(2))) : text;
    }

    private CompletableFuture<ObjectNode> commit(JsonNode step) {
        OffsetCommitRequestData request = new OffsetCommitRequestData().setGroupId(group(step)).setMemberId(text(step, "member", ""))
            .setGenerationIdOrMemberEpoch(number(step, "generation", -1)).setGroupInstanceId(text(step, "instance"));
        if (step.hasNonNull("retention_ms")) request.setRetentionTimeMs(step.get("retention_ms").asLong());
        List<String> names = new ArrayList<>();
        step.get("offsets").fieldNames().forEachRemaining(names::add);
        byTopic(names).forEach((name, numbers) -> {
            OffsetCommitRequestData.OffsetCommitRequestTopic topic = Version.withId(
                new OffsetCommitRequestData.OffsetCommitRequestTopic().setName(name), broker.topicIds.getOrDefault(name, Uuid.ZERO_UUID));
            numbers.forEach(number -> topic.partitions().add(new OffsetCommitRequestData.OffsetCommitRequestPartition()
                .setPartitionIndex(number).setCommittedOffset(step.get("offsets").get(name + "-" + number).asLong())
                .setCommittedMetadata(metadata(step, name + "-" + number))));
            request.topics().add(topic);
        });
        return broker.service.commitOffsets(context(step, ApiKeys.OFFSET_COMMIT, 9), request, BUFFERS).thenApply(reply -> {
            ObjectNode node = error((short) 0);
            ObjectNode errors = node.putObject("partitions");
            reply.topics().forEach(topic -> topic.partitions().forEach(partition ->
                errors.put(topic.name() + "-" + partition.partitionIndex(), Errors.forCode(partition.errorCode()).name())));
            return node;
        });
    }

    private CompletableFuture<ObjectNode> commitInTransaction(JsonNode step) {
        TxnOffsetCommitRequestData request = new TxnOffsetCommitRequestData().setGroupId(group(step)).setMemberId(text(step, "member", ""))
            .setGenerationId(number(step, "generation", -1)).setGroupInstanceId(text(step, "instance"))
            .setTransactionalId("txn").setProducerId(step.get("producer_id").asLong()).setProducerEpoch((short) 0);
        List<String> names = new ArrayList<>();
        step.get("offsets").fieldNames().forEachRemaining(names::add);
        byTopic(names).forEach((name, numbers) -> {
            TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic topic =
                new TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic().setName(name);
            numbers.forEach(number -> topic.partitions().add(new TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition()
                .setPartitionIndex(number).setCommittedOffset(step.get("offsets").get(name + "-" + number).asLong())
                .setCommittedMetadata(metadata(step, name + "-" + number))));
            request.topics().add(topic);
        });
        RequestContext context = context(step, ApiKeys.TXN_OFFSET_COMMIT, 3);
        return broker.service.commitTransactionalOffsets(context, request, BUFFERS).thenApply(reply -> {
            ObjectNode node = error((short) 0);
            ObjectNode errors = node.putObject("partitions");
            reply.topics().forEach(topic -> topic.partitions().forEach(partition ->
                errors.put(topic.name() + "-" + partition.partitionIndex(), Errors.forCode(partition.errorCode()).name())));
            return node;
        });
    }

    private CompletableFuture<ObjectNode> endTransaction(JsonNode step) {
        TransactionResult result = "commit".equals(text(step, "result")) ? TransactionResult.COMMIT : TransactionResult.ABORT;
        return broker.endTransaction(step.get("producer_id").asLong(), result).thenApply(nothing -> error((short) 0));
    }

    private CompletableFuture<ObjectNode> fetch(JsonNode step) {
        OffsetFetchRequestData.OffsetFetchRequestGroup request = new OffsetFetchRequestData.OffsetFetchRequestGroup()
            .setGroupId(group(step)).setMemberId(text(step, "member")).setMemberEpoch(number(step, "epoch", -1)).setTopics(null);
        if (step.hasNonNull("topics")) {
            List<OffsetFetchRequestData.OffsetFetchRequestTopics> topics = new ArrayList<>();
            byTopic(strings(step.get("topics"), List.of())).forEach((name, numbers) -> topics.add(
                new OffsetFetchRequestData.OffsetFetchRequestTopics().setName(name).setPartitionIndexes(numbers)));
            request.setTopics(topics);
        }
        boolean stable = step.has("require_stable") && step.get("require_stable").asBoolean();
        return broker.fetch(context(step, ApiKeys.OFFSET_FETCH, 9), request, stable).thenApply(reply -> {
            ObjectNode node = error(reply.errorCode());
            if (reply.errorCode() != 0) return node;
            ObjectNode offsets = node.putObject("offsets");
            ObjectNode errors = node.putObject("partitions");
            ObjectNode metadata = node.putObject("metadata");
            reply.topics().forEach(topic -> topic.partitions().forEach(partition -> {
                String name = topic.name() + "-" + partition.partitionIndex();
                offsets.put(name, partition.committedOffset());
                errors.put(name, Errors.forCode(partition.errorCode()).name());
                if (!partition.metadata().isEmpty()) metadata.put(name, partition.metadata());
            }));
            if (metadata.isEmpty()) node.remove("metadata");
            return node;
        });
    }

    private CompletableFuture<ObjectNode> deleteOffsets(JsonNode step) {
        OffsetDeleteRequestData request = new OffsetDeleteRequestData().setGroupId(group(step));
        byTopic(strings(step.get("topics"), List.of())).forEach((name, numbers) -> {
            OffsetDeleteRequestData.OffsetDeleteRequestTopic topic = new OffsetDeleteRequestData.OffsetDeleteRequestTopic().setName(name);
            numbers.forEach(n -> topic.partitions().add(new OffsetDeleteRequestData.OffsetDeleteRequestPartition().setPartitionIndex(n)));
            request.topics().add(topic);
        });
        return broker.service.deleteOffsets(context(step, ApiKeys.OFFSET_DELETE, 0), request, BUFFERS).thenApply(reply -> {
            ObjectNode node = error(reply.errorCode());
            if (reply.errorCode() != 0) return node;
            ObjectNode errors = node.putObject("partitions");
            reply.topics().forEach(topic -> topic.partitions().forEach(partition ->
                errors.put(topic.name() + "-" + partition.partitionIndex(), Errors.forCode(partition.errorCode()).name())));
            return node;
        });
    }

    // Groups.

    private CompletableFuture<ObjectNode> deleteGroups(JsonNode step) {
        RequestContext context = context(step, ApiKeys.DELETE_GROUPS, 2);
        return broker.service.deleteGroups(context, strings(step.get("groups"), List.of()), BUFFERS).thenApply(results -> {
            ObjectNode node = JSON.objectNode();
            ObjectNode groups = node.putObject("groups");
            results.forEach(result -> groups.put(result.groupId(), Errors.forCode(result.errorCode()).name()));
            return node;
        });
    }

    private CompletableFuture<ObjectNode> describe(JsonNode step) {
        RequestContext context = context(step, ApiKeys.DESCRIBE_GROUPS, 5);
        return broker.service.describeGroups(context, strings(step.get("groups"), List.of())).thenApply(groups -> {
            ObjectNode node = JSON.objectNode();
            ArrayNode list = node.putArray("groups");
            groups.forEach(group -> {
                ObjectNode entry = list.addObject().put("id", group.groupId()).put("error", Errors.forCode(group.errorCode()).name());
                entry.put("message", group.errorMessage());
                entry.put("state", group.groupState()).put("protocol_type", group.protocolType()).put("protocol", group.protocolData());
                ArrayNode members = entry.putArray("members");
                ObjectNode assignments = JSON.objectNode();
                boolean described = !group.members().isEmpty();
                for (DescribeGroupsResponseData.DescribedGroupMember member : group.members()) {
                    members.add(member.memberId());
                    described &= member.memberMetadata().length > 0;
                    assignments.set(member.memberId(), Dump.assignment(member.memberAssignment()));
                }
                entry.put("with_metadata", described).set("assignments", assignments);
            });
            return node;
        });
    }

    private CompletableFuture<ObjectNode> list(JsonNode step) {
        ListGroupsRequestData request = new ListGroupsRequestData().setStatesFilter(strings(step.get("states"), List.of()))
            .setTypesFilter(strings(step.get("types"), List.of()));
        return broker.service.listGroups(context(step, ApiKeys.LIST_GROUPS, 5), request).thenApply(reply -> {
            ObjectNode node = JSON.objectNode();
            ArrayNode groups = node.putArray("groups");
            reply.groups().stream().sorted(java.util.Comparator.comparing(ListGroupsResponseData.ListedGroup::groupId)).forEach(group ->
                groups.addObject().put("id", group.groupId()).put("protocol_type", group.protocolType())
                    .put("state", group.groupState()).put("type", group.groupType()));
            return node;
        });
    }
}
