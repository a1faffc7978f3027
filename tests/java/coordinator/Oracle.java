package org.apache.kafka.coordinator.group;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;
import org.apache.kafka.coordinator.group.generated.GroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * What Apache Kafka's own group coordinator does with a sequence of requests, in virtual time.
 *
 * One JSON object a line comes in (given, steps, end: the format of the generated sequences), one goes out: {"expect": [...]}, or
 * {"failure": "..."}. With "bytes": true each record also has its key and value in hex.
 */
public final class Oracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final ArrayNode expect = MAPPER.createArrayNode();
    private final Map<String, ObjectNode> lastGroups = new TreeMap<>();
    private final Map<String, ObjectNode> lastOffsets = new TreeMap<>();
    private final TreeSet<String> groupIds = new TreeSet<>(List.of("g"));
    private final Set<Integer> answered = new HashSet<>();
    private final JsonNode sequence;
    private final VirtualBroker broker;
    private final Requests requests;
    private final Dump dump;
    private Integer currentStep;
    private boolean quiet = true;
    private ArrayNode openRecords;

    private Oracle(JsonNode sequence) {
        this.sequence = sequence;
        Map<String, String> properties = new HashMap<>();
        sequence.path("given").path("config").fields().forEachRemaining(e -> properties.put(e.getKey(), e.getValue().asText()));
        this.broker = new Version(properties, this::appended, this::instantEnds);
        this.requests = new Requests(broker);
        this.dump = new Dump(broker);
        broker.callListener = call -> expect.addObject().put("at", broker.now()).set("call", call);
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        MemberIds.install();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = MAPPER.createObjectNode();
            try {
                answer.set("expect", new Oracle(MAPPER.readTree(line)).run());
            } catch (Throwable failure) {
                answer.put("failure", failure + " at " + List.of(failure.getStackTrace()).subList(0, Math.min(12, failure.getStackTrace().length)));
            }
            out.println(MAPPER.writeValueAsString(answer));
            out.flush();
        }
    }

    private ArrayNode run() {
        JsonNode given = sequence.path("given");
        MemberIds.reset(Requests.strings(given.get("ids"), List.of()));
        world(given);
        quiet = false;
        for (JsonNode step : sequence.get("steps")) step(step);
        currentStep = null;
        openRecords = null;
        broker.advanceTo(sequence.get("end").asLong());
        instantEnds(broker.now());
        for (JsonNode step : sequence.get("steps")) {
            int number = step.get("step").asInt();
            if (!answered.contains(number)) expect.addObject().put("step", number).put("no_reply", true);
        }
        return expect;
    }

    private void step(JsonNode step) {
        currentStep = null;
        openRecords = null;
        broker.advanceTo(step.get("at").asLong());
        currentStep = step.get("step").asInt();
        openRecords = null;
        int number = currentStep;
        if (step.has("group")) groupIds.add(step.get("group").asText());
        if (step.hasNonNull("new_id")) MemberIds.addFirst(step.get("new_id").asText());
        CompletableFuture<ObjectNode> reply;
        try {
            reply = requests.send(step);
        } catch (RuntimeException failure) {
            reply = CompletableFuture.failedFuture(failure);
        }
        reply.whenComplete((node, failure) -> {
            answered.add(number);
            expect.addObject().put("step", number).put("at", broker.now()).set("reply", failure == null ? node
                : MAPPER.createObjectNode().put("error", Errors.forException(Errors.maybeUnwrapException(failure)).name()));
        });
        currentStep = null;
        openRecords = null;
    }

    // What happened: records as they are appended, states at the end of each instant in which they changed.

    private void appended(VirtualBroker.Appended appended) {
        if (quiet) return;
        if (openRecords == null) {
            ObjectNode entry = expect.addObject().put("at", broker.now());
            if (currentStep != null) entry.put("step", currentStep);
            openRecords = entry.putArray("records");
        }
        ObjectNode record = dump.record(appended, sequence.path("bytes").asBoolean());
        if (record.hasNonNull("group")) groupIds.add(record.get("group").asText());
        openRecords.add(record);
    }

    private void instantEnds(long now) {
        if (quiet) return;
        for (String groupId : groupIds) {
            changed("group", groupId, dump.group(broker.shard, groupId), lastGroups, MAPPER.createObjectNode().put("exists", false), now);
            changed("offsets", groupId, offsets(groupId), lastOffsets, MAPPER.createObjectNode(), now);
        }
        openRecords = null;
    }

    private void changed(String kind, String groupId, ObjectNode state, Map<String, ObjectNode> last, ObjectNode missing, long now) {
        ObjectNode before = last.put(groupId, state);
        if (state.equals(before == null ? missing : before)) return;
        ObjectNode entry = expect.addObject().put("at", now);
        if (!groupId.equals("g")) entry.put("id", groupId);
        entry.set(kind, state);
    }

    private ObjectNode offsets(String groupId) {
        ObjectNode step = MAPPER.createObjectNode().put("op", "offset_fetch").put("group", groupId).put("require_stable", true);
        CompletableFuture<ObjectNode> reply = requests.send(step);
        return (ObjectNode) reply.join().get("offsets");
    }

    // The world before the first step.

    private void world(JsonNode given) {
        broker.topicsAtOnce(() -> {
            broker.setTopic("t", Uuid.fromString("t000A4s3VTwiI5CTbEp6PO"), 4);
            broker.setTopic("u", Uuid.fromString("u000B4s3VTwiI5YHbPp6YQ"), 10);
            given.path("topics").fields().forEachRemaining(topic -> broker.setTopic(
                topic.getKey(), Uuid.fromString(topic.getValue().get("id").asText()), topic.getValue().get("partitions").asInt()));
        });
        given.path("records").forEach(record -> {
            groupIds.add(record.get(0).asText());
            broker.preload(MemoryRecords.withRecords(Compression.NONE, new SimpleRecord(VirtualBroker.EPOCH_MS,
                HexFormat.of().parseHex(record.get(1).asText()), HexFormat.of().parseHex(record.get(2).asText()))));
        });
        if (given.has("group")) preload(given.get("group"));
        broker.elect();
        if (given.has("group")) restoreProtocols(given.get("group"));
        for (String groupId : groupIds) {
            lastGroups.put(groupId, dump.group(broker.shard, groupId));
            lastOffsets.put(groupId, offsets(groupId));
        }
    }

    private void preload(JsonNode group) {
        GroupMetadataValue value = new GroupMetadataValue().setProtocolType(Requests.text(group, "protocol_type"))
            .setProtocol(Requests.text(group, "protocol")).setLeader(Requests.text(group, "leader"))
            .setGeneration(group.get("generation").asInt()).setCurrentStateTimestamp(VirtualBroker.EPOCH_MS);
        group.get("members").forEach(member -> value.members().add(new GroupMetadataValue.MemberMetadata()
            .setMemberId(Requests.text(member, "id")).setGroupInstanceId(Requests.text(member, "instance")).setClientId("c")
            .setClientHost("/127.0.0.1").setSessionTimeout(member.path("session").asInt(10000))
            .setRebalanceTimeout(member.path("rebalance").asInt(30000)).setSubscription(Requests.subscription(member))
            .setAssignment(member.hasNonNull("assignment") ? Requests.assignment(Requests.strings(member.get("assignment"), null)) : new byte[0])));
        preload(Version.record(new GroupMetadataKey().setGroup("g"), 2, new ApiMessageAndVersion(value, (short) 3)));
        group.path("offsets").fields().forEachRemaining(offset -> {
            String partition = offset.getKey();
            int dash = partition.lastIndexOf('-');
            String topic = partition.substring(0, dash);
            preload(Version.record(
                new OffsetCommitKey().setGroup("g").setTopic(topic).setPartition(Integer.parseInt(partition.substring(dash + 1))), 1,
                Version.withId(new OffsetCommitValue().setOffset(offset.getValue().asLong()).setLeaderEpoch(-1).setMetadata("")
                    .setCommitTimestamp(VirtualBroker.EPOCH_MS), broker.topicIds.getOrDefault(topic, Uuid.ZERO_UUID))));
        });
    }

    private void preload(CoordinatorRecord record) {
        broker.preload(MemoryRecords.withRecords(Compression.NONE,
            new SimpleRecord(VirtualBroker.EPOCH_MS, broker.serde.serializeKey(record), broker.serde.serializeValue(record))));
    }

    /** A loaded member supports only the selected protocol; the world says which ones it really supports. */
    private void restoreProtocols(JsonNode given) {
        ClassicGroup group = (ClassicGroup) dump.find(broker.shard, "g");
        given.get("members").forEach(node -> {
            ClassicGroupMember member = group.member(Requests.text(node, "id"));
            group.updateMember(member, Requests.protocols(node), member.rebalanceTimeoutMs(), member.sessionTimeoutMs(), null);
        });
    }
}
