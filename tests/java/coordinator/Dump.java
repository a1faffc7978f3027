package org.apache.kafka.coordinator.group;

import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;
import org.apache.kafka.coordinator.group.generated.*;
import org.apache.kafka.coordinator.group.modern.MemberState;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;

/** Kafka's group states and records in the words of the sequences' "expect" lists. */
final class Dump {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private final VirtualBroker broker;
    private final Map<Uuid, String> topicNames;

    Dump(VirtualBroker broker) {
        this.broker = broker;
        this.topicNames = broker.topicNames;
    }

    static ArrayNode strings(Collection<String> values) {
        ArrayNode array = JSON.arrayNode();
        values.forEach(array::add);
        return array;
    }

    String partition(Uuid topicId, int partition) {
        return topicNames.getOrDefault(topicId, topicId.toString()) + "-" + partition;
    }

    // Groups.

    ObjectNode group(GroupCoordinatorShard shard, String groupId) {
        ObjectNode node = JSON.objectNode();
        try {
            Group group = find(shard, groupId);
            node.put("exists", true).put("type", group.type().toString());
            if (group instanceof ClassicGroup classic) classicGroup(node, classic);
            else if (group instanceof ConsumerGroup consumer) consumerGroup(node, consumer);
            else {
                node.put("state", group.stateAsString());
                broker.showNewer(node, group, manager(shard), this);
            }
        } catch (GroupIdNotFoundException e) {
            node.put("exists", false);
        }
        return node;
    }

    Group find(GroupCoordinatorShard shard, String groupId) {
        return manager(shard).group(groupId);
    }

    private static GroupMetadataManager manager(GroupCoordinatorShard shard) {
        return (GroupMetadataManager) field(shard, "groupMetadataManager");
    }

    private static Object field(Object target, String name) {
        try {
            Field field = target.getClass().getDeclaredField(name);
            field.setAccessible(true);
            return field.get(target);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    @SuppressWarnings("unchecked")
    private void classicGroup(ObjectNode node, ClassicGroup group) {
        node.put("state", group.stateAsString()).put("generation", group.generationId()).put("leader", group.leaderOrNull());
        node.put("protocol", group.protocolName().orElse(null)).put("protocol_type", group.protocolType().orElse(""));
        node.put("member_count", group.numMembers()).set("members", strings(new TreeSet<>(group.allMemberIds())));
        node.set("pending", strings(new TreeSet<>((Set<String>) field(group, "pendingJoinMembers"))));
        ArrayNode details = node.putArray("details");
        for (String id : new TreeSet<>(group.allMemberIds())) {
            ClassicGroupMember member = group.member(id);
            ObjectNode detail = details.addObject().put("id", id).put("instance", member.groupInstanceId().orElse(null));
            detail.put("session", member.sessionTimeoutMs()).put("rebalance", member.rebalanceTimeoutMs());
            detail.put("waiting", member.isAwaitingJoin() ? "join" : member.isAwaitingSync() ? "sync" : null);
            ArrayNode protocols = detail.putArray("protocols");
            member.supportedProtocols().forEach(protocol -> protocols.add(protocol.name()));
            if (ConsumerProtocol.PROTOCOL_TYPE.equals(group.protocolType().orElse(null)) && !member.supportedProtocols().isEmpty()) {
                detail.set("topics", topicsOf(member.supportedProtocols().iterator().next().metadata()));
                detail.set("assignment", assignment(member.assignment()));
            }
        }
    }

    static ArrayNode topicsOf(byte[] subscription) {
        try {
            return strings(new TreeSet<>(ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(subscription)).topics()));
        } catch (RuntimeException malformed) {
            return JSON.arrayNode();
        }
    }

    static ArrayNode assignment(byte[] bytes) {
        TreeSet<String> partitions = new TreeSet<>();
        try {
            if (bytes.length > 0) {
                ConsumerProtocol.deserializeAssignment(ByteBuffer.wrap(bytes)).partitions().forEach(p -> partitions.add(p.toString()));
            }
        } catch (RuntimeException malformed) {
            partitions.add("malformed");
        }
        return strings(partitions);
    }

    private void consumerGroup(ObjectNode node, ConsumerGroup group) {
        node.put("state", group.stateAsString()).put("epoch", group.groupEpoch()).put("assignment_epoch", group.assignmentEpoch());
        node.put("protocol_type", group.protocolType()).put("member_count", group.numMembers());
        node.set("members", strings(new TreeSet<>(group.members().keySet())));
        if (!group.subscribedRegularExpressions().isEmpty()) {
            ObjectNode regexes = node.putObject("regexes");
            for (String regex : new TreeSet<>(group.subscribedRegularExpressions().keySet())) {
                regexes.set(regex, group.resolvedRegularExpression(regex).map(r -> strings(new TreeSet<>(Version.topics(r)))).orElse(null));
            }
        }
        ArrayNode details = node.putArray("details");
        for (String id : new TreeSet<>(group.members().keySet())) {
            ConsumerGroupMember member = group.members().get(id);
            ObjectNode detail = details.addObject().put("id", id).put("instance", member.instanceId()).put("epoch", member.memberEpoch());
            detail.put("previous_epoch", member.previousMemberEpoch()).put("state", member.state().name());
            detail.set("assigned", epochs(Version.withEpochs(member.assignedPartitions())));
            detail.set("revoking", epochs(Version.withEpochs(member.partitionsPendingRevocation())));
            detail.set("target", partitions(group.targetAssignment(id).partitions()));
            detail.set("topics", strings(new TreeSet<>(member.subscribedTopicNames())));
            detail.put("regex", member.subscribedTopicRegex()).put("assignor", member.serverAssignorName().orElse(null));
            detail.put("rebalance", member.rebalanceTimeoutMs());
            detail.set("classic", classic(member.classicMemberMetadata().orElse(null)));
        }
    }

    private static ObjectNode classic(ConsumerGroupMemberMetadataValue.ClassicMemberMetadata metadata) {
        if (metadata == null) return null;
        ObjectNode node = JSON.objectNode().put("session", metadata.sessionTimeoutMs());
        ArrayNode protocols = node.putArray("protocols");
        metadata.supportedProtocols().forEach(protocol -> protocols.add(protocol.name()));
        return node;
    }

    private ObjectNode epochs(Map<Uuid, Map<Integer, Integer>> assigned) {
        TreeMap<String, Integer> sorted = new TreeMap<>();
        assigned.forEach((topic, partitions) -> partitions.forEach((number, epoch) -> sorted.put(partition(topic, number), epoch)));
        ObjectNode node = JSON.objectNode();
        sorted.forEach(node::put);
        return node;
    }

    ArrayNode partitions(Map<Uuid, ? extends Collection<Integer>> topics) {
        TreeSet<String> sorted = new TreeSet<>();
        topics.forEach((topic, numbers) -> numbers.forEach(number -> sorted.add(partition(topic, number))));
        return strings(sorted);
    }

    // Records.

    ObjectNode record(VirtualBroker.Appended appended, boolean withBytes) {
        ObjectNode node = JSON.objectNode();
        if (appended.producerId() >= 0) node.put("producer_id", appended.producerId());
        if (appended.marker() != null) return node.put("type", "marker").put("result", appended.marker().name().toLowerCase());
        ApiMessage key = Version.key(appended.record());
        node.put("type", key.getClass().getSimpleName().replaceAll("Key$", ""));
        if (withBytes) {
            node.put("key_hex", HexFormat.of().formatHex(appended.key()));
            node.put("value_hex", appended.value() == null ? null : HexFormat.of().formatHex(appended.value()));
        }
        keyFields(node, key);
        node.set("value", appended.record().value() == null ? null : value(appended.record().value().message()));
        return node;
    }

    private static void keyFields(ObjectNode node, ApiMessage key) {
        if (key instanceof OffsetCommitKey k) node.put("group", k.group()).put("partition", k.topic() + "-" + k.partition());
        else if (key instanceof GroupMetadataKey k) node.put("group", k.group());
        else if (key instanceof ConsumerGroupMetadataKey k) node.put("group", k.groupId());
        else if (key instanceof ConsumerGroupPartitionMetadataKey k) node.put("group", k.groupId());
        else if (key instanceof ConsumerGroupTargetAssignmentMetadataKey k) node.put("group", k.groupId());
        else if (key instanceof ConsumerGroupMemberMetadataKey k) node.put("group", k.groupId()).put("member", k.memberId());
        else if (key instanceof ConsumerGroupTargetAssignmentMemberKey k) node.put("group", k.groupId()).put("member", k.memberId());
        else if (key instanceof ConsumerGroupCurrentMemberAssignmentKey k) node.put("group", k.groupId()).put("member", k.memberId());
        else if (key instanceof ConsumerGroupRegularExpressionKey k) node.put("group", k.groupId()).put("regex", k.regularExpression());
        else if (key.getClass().getSimpleName().matches("(Share|Streams)Group.*")) {
            // Not every version has all of these classes.
            node.put("group", (String) field(key, "groupId"));
            if (key.toString().contains("memberId=")) node.put("member", (String) field(key, "memberId"));
        }
    }

    private static long virtual(long timestamp) {
        return timestamp <= 0 ? timestamp : timestamp - VirtualBroker.EPOCH_MS;
    }

    private ObjectNode value(ApiMessage value) {
        ObjectNode node = JSON.objectNode();
        if (value instanceof OffsetCommitValue v) {
            String metadata = v.metadata().length() > 64 ? v.metadata().charAt(0) + "*" + v.metadata().length() : v.metadata();
            node.put("offset", v.offset()).put("leader_epoch", v.leaderEpoch()).put("metadata", metadata);
            node.put("commit_timestamp", virtual(v.commitTimestamp())).put("expire_timestamp", virtual(v.expireTimestamp()));
        } else if (value instanceof GroupMetadataValue v) {
            groupMetadata(node, v);
        } else if (value instanceof ConsumerGroupMetadataValue v) {
            node.put("epoch", v.epoch()).put("metadata_hash", Long.toString(Version.metadataHash(v)));
        } else if (value instanceof ConsumerGroupMemberMetadataValue v) {
            node.put("instance", v.instanceId()).put("rack", v.rackId()).put("rebalance", v.rebalanceTimeoutMs());
            node.put("assignor", v.serverAssignor()).put("regex", v.subscribedTopicRegex()).set("topics", strings(v.subscribedTopicNames()));
            node.set("classic", classic(v.classicMemberMetadata()));
        } else if (value instanceof ConsumerGroupTargetAssignmentMetadataValue v) {
            node.put("assignment_epoch", v.assignmentEpoch()).put("assignment_timestamp", virtual(Version.assignmentTimestamp(v)));
        } else if (value instanceof ConsumerGroupTargetAssignmentMemberValue v) {
            Map<Uuid, List<Integer>> topics = new LinkedHashMap<>();
            v.topicPartitions().forEach(topic -> topics.put(topic.topicId(), topic.partitions()));
            node.set("partitions", partitions(topics));
        } else if (value instanceof ConsumerGroupCurrentMemberAssignmentValue v) {
            node.put("epoch", v.memberEpoch()).put("previous_epoch", v.previousMemberEpoch());
            node.put("state", MemberState.fromValue(v.state()).name());
            node.set("assigned", recordEpochs(v.assignedPartitions()));
            node.set("revoking", recordEpochs(v.partitionsPendingRevocation()));
        } else if (value instanceof ConsumerGroupRegularExpressionValue v) {
            node.put("version", v.version()).put("timestamp", virtual(v.timestamp())).set("topics", strings(v.topics()));
        }
        return node;
    }

    private ObjectNode recordEpochs(List<ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions> topics) {
        Map<Uuid, Map<Integer, Integer>> epochs = new LinkedHashMap<>();
        topics.forEach(topic -> {
            Map<Integer, Integer> numbers = new LinkedHashMap<>();
            List<Integer> known = Version.assignmentEpochs(topic);
            for (int i = 0; i < topic.partitions().size(); i++) numbers.put(topic.partitions().get(i), known.get(i));
            epochs.put(topic.topicId(), numbers);
        });
        return epochs(epochs);
    }

    private static void groupMetadata(ObjectNode node, GroupMetadataValue v) {
        node.put("protocol_type", v.protocolType()).put("generation", v.generation()).put("protocol", v.protocol());
        node.put("leader", v.leader()).put("state_timestamp", virtual(v.currentStateTimestamp()));
        ArrayNode members = node.putArray("members");
        v.members().forEach(m -> {
            ObjectNode member = members.addObject().put("id", m.memberId()).put("instance", m.groupInstanceId());
            member.put("rebalance", m.rebalanceTimeout()).put("session", m.sessionTimeout());
            if (ConsumerProtocol.PROTOCOL_TYPE.equals(v.protocolType())) {
                member.set("topics", topicsOf(m.subscription()));
                member.set("assignment", m.assignment().length == 0 ? null : assignment(m.assignment()));
            }
        });
    }
}
