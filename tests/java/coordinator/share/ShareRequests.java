package org.apache.kafka.coordinator.group;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.generated.*;
import org.apache.kafka.coordinator.group.modern.share.ShareGroup;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupMember;

/** Share groups: their steps as calls of Kafka's coordinator service, its answers, their states and records. */
final class ShareRequests {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private final VirtualBroker broker;
    private final ShareCalls calls;

    ShareRequests(VirtualBroker broker, ShareCalls calls) {
        this.broker = broker;
        this.calls = calls;
    }

    CompletableFuture<ObjectNode> send(JsonNode step) {
        return switch (step.get("op").asText()) {
            case "share_heartbeat" -> heartbeat(step);
            case "describe_share_groups" -> describe(step);
            case "describe_share_offsets" -> describeOffsets(step);
            case "alter_share_offsets" -> alter(step);
            case "delete_share_offsets" -> delete(step);
            case "persister" -> {
                calls.answer(step);
                yield CompletableFuture.completedFuture(error((short) 0, null));
            }
            default -> throw new IllegalArgumentException("unknown op " + step);
        };
    }

    /** Kafka's usual text of an error is left out. */
    private static ObjectNode error(short code, String message) {
        boolean usual = message == null || message.equals(Errors.forCode(code).message());
        return JSON.objectNode().put("error", Errors.forCode(code).name()).put("message", usual ? null : message);
    }

    private String name(Uuid id) {
        return broker.topicNames.getOrDefault(id, id.toString());
    }

    private CompletableFuture<ObjectNode> heartbeat(JsonNode step) {
        ShareGroupHeartbeatRequestData request = new ShareGroupHeartbeatRequestData().setGroupId(Requests.group(step))
            .setMemberId(Requests.text(step, "member")).setMemberEpoch(step.get("epoch").asInt()).setRackId(Requests.text(step, "rack"))
            .setSubscribedTopicNames(Requests.strings(step.get("topics"), null));
        return broker.service.shareGroupHeartbeat(Requests.context(step, ApiKeys.SHARE_GROUP_HEARTBEAT, 1), request).thenApply(reply -> {
            ObjectNode node = error(reply.errorCode(), reply.errorMessage());
            if (reply.errorCode() != 0) return node;
            node.put("member", reply.memberId()).put("epoch", reply.memberEpoch()).put("heartbeat_interval_ms", reply.heartbeatIntervalMs());
            if (reply.assignment() == null) node.putNull("assignment");
            else {
                ArrayNode topics = node.putArray("assignment");
                reply.assignment().topicPartitions().forEach(topic -> topics(topics, topic.topicId(), topic.partitions()));
            }
            return node;
        });
    }

    private void topics(ArrayNode topics, Uuid id, Iterable<Integer> partitions) {
        ArrayNode numbers = topics.addArray().add(name(id)).addArray();
        partitions.forEach(numbers::add);
    }

    private CompletableFuture<ObjectNode> describe(JsonNode step) {
        return broker.service.shareGroupDescribe(Requests.context(step, ApiKeys.SHARE_GROUP_DESCRIBE, 1),
            Requests.strings(step.get("groups"), List.of())).thenApply(groups -> {
                ObjectNode node = JSON.objectNode();
                ArrayNode list = node.putArray("groups");
                groups.forEach(group -> {
                    ObjectNode entry = error(group.errorCode(), group.errorMessage()).put("id", group.groupId());
                    list.add(entry);
                    if (group.errorCode() != 0) return;
                    entry.put("state", group.groupState()).put("epoch", group.groupEpoch()).put("assignment_epoch", group.assignmentEpoch());
                    entry.put("assignor", group.assignorName());
                    ArrayNode members = entry.putArray("members");
                    group.members().forEach(member -> {
                        ObjectNode detail = members.addObject().put("id", member.memberId()).put("epoch", member.memberEpoch());
                        detail.put("rack", member.rackId()).put("client", member.clientId() + "@" + member.clientHost());
                        detail.put("topics", String.join(" ", member.subscribedTopicNames()));
                        ArrayNode topics = detail.putArray("assignment");
                        member.assignment().topicPartitions().forEach(topic -> topics(topics, topic.topicId(), topic.partitions()));
                    });
                });
                return node;
            });
    }

    private CompletableFuture<ObjectNode> describeOffsets(JsonNode step) {
        DescribeShareGroupOffsetsRequestData.DescribeShareGroupOffsetsRequestGroup request =
            new DescribeShareGroupOffsetsRequestData.DescribeShareGroupOffsetsRequestGroup().setGroupId(Requests.group(step));
        boolean all = !step.hasNonNull("topics");
        if (!all) {
            step.get("topics").fields().forEachRemaining(entry -> {
                List<Integer> numbers = new ArrayList<>();
                entry.getValue().forEach(number -> numbers.add(number.asInt()));
                request.topics().add(new DescribeShareGroupOffsetsRequestData.DescribeShareGroupOffsetsRequestTopic()
                    .setTopicName(entry.getKey()).setPartitions(numbers));
            });
        } else request.setTopics(null);
        var context = Requests.context(step, ApiKeys.DESCRIBE_SHARE_GROUP_OFFSETS, 1);
        var future = all ? broker.service.describeShareGroupAllOffsets(context, request) : broker.service.describeShareGroupOffsets(context, request);
        return future.thenApply(group -> {
            ObjectNode node = error(group.errorCode(), group.errorMessage());
            ArrayNode topics = node.putArray("topics");
            group.topics().forEach(topic -> {
                ArrayNode partitions = topics.addArray().add(topic.topicName()).add(topic.topicId().equals(Uuid.ZERO_UUID)).addArray();
                topic.partitions().forEach(p -> partitions.addArray().add(p.partitionIndex()).add(p.startOffset()).add(p.leaderEpoch())
                    .add(p.lag()).add(error(p.errorCode(), p.errorMessage())));
            });
            return node;
        });
    }

    private CompletableFuture<ObjectNode> alter(JsonNode step) {
        AlterShareGroupOffsetsRequestData request = new AlterShareGroupOffsetsRequestData().setGroupId(Requests.group(step));
        step.get("topics").fields().forEachRemaining(entry -> {
            List<AlterShareGroupOffsetsRequestData.AlterShareGroupOffsetsRequestPartition> partitions = new ArrayList<>();
            entry.getValue().forEach(pair -> partitions.add(new AlterShareGroupOffsetsRequestData.AlterShareGroupOffsetsRequestPartition()
                .setPartitionIndex(pair.get(0).asInt()).setStartOffset(pair.get(1).asLong())));
            request.topics().add(new AlterShareGroupOffsetsRequestData.AlterShareGroupOffsetsRequestTopic()
                .setTopicName(entry.getKey()).setPartitions(partitions));
        });
        return broker.service.alterShareGroupOffsets(
            Requests.context(step, ApiKeys.ALTER_SHARE_GROUP_OFFSETS, 0), Requests.group(step), request).thenApply(reply -> {
                ObjectNode node = error(reply.errorCode(), reply.errorMessage());
                ArrayNode topics = node.putArray("topics");
                reply.responses().forEach(topic -> {
                    ArrayNode partitions = topics.addArray().add(topic.topicName()).add(topic.topicId().equals(Uuid.ZERO_UUID)).addArray();
                    topic.partitions().forEach(p -> partitions.addArray().add(p.partitionIndex()).add(error(p.errorCode(), p.errorMessage())));
                });
                return node;
            });
    }

    private CompletableFuture<ObjectNode> delete(JsonNode step) {
        DeleteShareGroupOffsetsRequestData request = new DeleteShareGroupOffsetsRequestData().setGroupId(Requests.group(step));
        Requests.strings(step.get("topics"), List.of()).forEach(name -> request.topics().add(
            new DeleteShareGroupOffsetsRequestData.DeleteShareGroupOffsetsRequestTopic().setTopicName(name)));
        return broker.service.deleteShareGroupOffsets(Requests.context(step, ApiKeys.DELETE_SHARE_GROUP_OFFSETS, 0), request).thenApply(reply -> {
            ObjectNode node = error(reply.errorCode(), reply.errorMessage());
            ArrayNode topics = node.putArray("topics");
            reply.responses().forEach(topic -> topics.addArray().add(topic.topicName()).add(topic.topicId().equals(Uuid.ZERO_UUID))
                .add(error(topic.errorCode(), topic.errorMessage())));
            return node;
        });
    }

    // States and records.

    static boolean show(ObjectNode node, Group group, GroupMetadataManager manager, Dump dump) {
        if (!(group instanceof ShareGroup share)) return false;
        node.put("state", share.stateAsString()).put("epoch", share.groupEpoch()).put("assignment_epoch", share.assignmentEpoch());
        ArrayNode details = node.putArray("details");
        for (String id : new TreeSet<>(share.members().keySet())) {
            ShareGroupMember member = share.members().get(id);
            ObjectNode detail = details.addObject().put("id", id).put("epoch", member.memberEpoch());
            detail.put("previous_epoch", member.previousMemberEpoch()).put("state", member.state().name()).put("rack", member.rackId());
            detail.set("assigned", dump.partitions(member.assignedPartitions()));
            detail.set("target", dump.partitions(share.targetAssignment(id).partitions()));
            detail.set("topics", Dump.strings(new TreeSet<>(member.subscribedTopicNames())));
        }
        ShareGroup.ShareGroupStatePartitionMetadataInfo info = manager.shareGroupStatePartitionMetadata().get(share.groupId());
        if (info == null) return true;
        node.set("initializing", dump.partitions(partitions(info.initializingTopics())));
        node.set("initialized", dump.partitions(partitions(info.initializedTopics())));
        TreeSet<String> deleting = new TreeSet<>();
        info.deletingTopics().forEach(id -> deleting.add(dump.partition(id, 0)));
        node.set("deleting", Dump.strings(deleting));
        return true;
    }

    private static Map<Uuid, java.util.Set<Integer>> partitions(Map<Uuid, ShareGroup.InitMapValue> topics) {
        Map<Uuid, java.util.Set<Integer>> found = new LinkedHashMap<>();
        topics.forEach((id, topic) -> found.put(id, topic.partitions()));
        return found;
    }
}
