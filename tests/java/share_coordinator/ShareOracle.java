package org.apache.kafka.coordinator.share;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryRequestData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.server.share.SharePartitionKey;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * What Apache Kafka's own share coordinator does with a sequence of requests, in virtual time; how it combines lists of batches.
 *
 * One JSON object a line comes in, one goes out. {"config": {...}, "steps": [...]} is answered with one entry a step: the answer,
 * the records in hex, the redundant offset. {"before": [...], "after": [...], "start": N} is answered with the combined batches.
 */
public final class ShareOracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    private final Clock clock = new Clock();
    private final ShareCoordinatorRecordSerde serde = new ShareCoordinatorRecordSerde();
    private final List<byte[][]> log = new ArrayList<>();
    private final Map<Uuid, Integer> topics = new HashMap<>();
    private final ShareCoordinatorConfig config;
    private ShareCoordinatorShard shard;

    private ShareOracle(JsonNode settings) {
        Map<String, String> properties = new HashMap<>();
        settings.fields().forEachRemaining(e -> properties.put(e.getKey(), e.getValue().asText()));
        config = new ShareCoordinatorConfig(new AbstractConfig(ShareCoordinatorConfig.CONFIG_DEF, properties, false));
        shard = newShard();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = MAPPER.readTree(line);
            ObjectNode answer = MAPPER.createObjectNode();
            try {
                answer.set("expect", asked.has("steps") ? new ShareOracle(asked.get("config")).run(asked.get("steps")) : combined(asked));
            } catch (Throwable failure) {
                answer.put("failure", failure + " at " + List.of(failure.getStackTrace()).subList(0, Math.min(12, failure.getStackTrace().length)));
            }
            out.println(MAPPER.writeValueAsString(answer));
            out.flush();
        }
    }

    // Combining batches.

    private static ArrayNode combined(JsonNode asked) {
        return batches(new PersisterStateBatchCombiner(batches(asked.get("before")), batches(asked.get("after")),
            asked.get("start").asLong()).combineStateBatches());
    }

    private static List<PersisterStateBatch> batches(JsonNode nodes) {
        List<PersisterStateBatch> found = new ArrayList<>();
        nodes.forEach(each -> found.add(new PersisterStateBatch(each.get(0).asLong(), each.get(1).asLong(),
            (byte) each.get(2).asInt(), (short) each.get(3).asInt())));
        return found;
    }

    private static ArrayNode batches(List<PersisterStateBatch> batches) {
        ArrayNode found = MAPPER.createArrayNode();
        batches.forEach(each -> found.addArray().add(each.firstOffset()).add(each.lastOffset()).add(each.deliveryState()).add(each.deliveryCount()));
        return found;
    }

    // The shard.

    private ShareCoordinatorShard newShard() {
        SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
        return new ShareCoordinatorShard.Builder(config).withSnapshotRegistry(registry).withLogContext(new LogContext()).withTime(clock)
            .withCoordinatorMetrics(new ShareCoordinatorMetrics(new Metrics())).withTopicPartition(new TopicPartition("__share_group_state", 0))
            .build();
    }

    private ArrayNode run(JsonNode steps) {
        ArrayNode expect = MAPPER.createArrayNode();
        for (JsonNode step : steps) {
            clock.now = step.get("at").asLong();
            ObjectNode entry = expect.addObject();
            CoordinatorResult<?, CoordinatorRecord> result = step(step, entry);
            ArrayNode records = entry.putArray("records");
            for (CoordinatorRecord record : result.records()) append(record, records.addArray());
            Optional<Long> redundant = shard.lastRedundantOffset().response();
            entry.put("redundant", redundant.orElse(null));
        }
        return expect;
    }

    private void append(CoordinatorRecord record, ArrayNode shown) {
        byte[] key = serde.serializeKey(record);
        byte[] value = serde.serializeValue(record);
        shown.add(HEX.formatHex(key)).add(value == null ? null : HEX.formatHex(value));
        log.add(new byte[][] {key, value});
        shard.replay(log.size() - 1, -1, (short) -1, record);
    }

    private CoordinatorResult<?, CoordinatorRecord> step(JsonNode step, ObjectNode entry) {
        switch (step.get("op").asText()) {
            case "initialize": return initialize(step, entry);
            case "read": return read(step, entry);
            case "summary": return summary(step, entry);
            case "write": return write(step, entry);
            case "delete": return delete(step, entry);
            case "cold": return shard.snapshotColdPartitions();
            case "forget":
                Set<Uuid> gone = new HashSet<>();
                step.get("topics").forEach(each -> gone.add(Uuid.fromString(each.asText())));
                return shard.maybeCleanupShareState(gone);
            case "topics":
                topics.clear();
                step.get("topics").fields().forEachRemaining(e -> topics.put(Uuid.fromString(e.getKey()), e.getValue().asInt()));
                shard.onMetadataUpdate(null, new Image(topics));
                return new CoordinatorResult<>(List.of());
            case "place":
                entry.put("answer", Utils.abs(SharePartitionKey.getInstance(group(step), topic(step), partition(step)).asCoordinatorKey().hashCode())
                    % step.get("of").asInt());
                return new CoordinatorResult<>(List.of());
            case "load":
                shard = newShard();
                for (int offset = step.get("from").asInt(); offset < log.size(); offset++) {
                    byte[][] record = log.get(offset);
                    shard.replay(offset, -1, (short) -1,
                        serde.deserialize(ByteBuffer.wrap(record[0]), record[1] == null ? null : ByteBuffer.wrap(record[1])));
                }
                shard.onLoaded(new Image(topics));
                return new CoordinatorResult<>(List.of());
            default: throw new IllegalArgumentException(step.toString());
        }
    }

    private static String group(JsonNode step) {
        return step.get("key").get(0).asText();
    }

    private static Uuid topic(JsonNode step) {
        return Uuid.fromString(step.get("key").get(1).asText());
    }

    private static int partition(JsonNode step) {
        return step.get("key").get(2).asInt();
    }

    private static void answer(ObjectNode entry, short error, String message, Supplier<ObjectNode> value) {
        if (error == 0) entry.set("answer", value.get());
        else entry.putObject("answer").put("error", Errors.forCode(error).name()).put("message", message);
    }

    private CoordinatorResult<?, CoordinatorRecord> initialize(JsonNode step, ObjectNode entry) {
        var result = shard.initializeState(new InitializeShareGroupStateRequestData().setGroupId(group(step)).setTopics(List.of(
            new InitializeShareGroupStateRequestData.InitializeStateData().setTopicId(topic(step)).setPartitions(List.of(
                new InitializeShareGroupStateRequestData.PartitionData().setPartition(partition(step))
                    .setStateEpoch(step.get("state_epoch").asInt()).setStartOffset(step.get("start").asLong()))))));
        var partition = result.response().results().get(0).partitions().get(0);
        answer(entry, partition.errorCode(), partition.errorMessage(), MAPPER::createObjectNode);
        return result;
    }

    private CoordinatorResult<?, CoordinatorRecord> read(JsonNode step, ObjectNode entry) {
        var result = shard.readStateAndMaybeUpdateLeaderEpoch(new ReadShareGroupStateRequestData().setGroupId(group(step)).setTopics(List.of(
            new ReadShareGroupStateRequestData.ReadStateData().setTopicId(topic(step)).setPartitions(List.of(
                new ReadShareGroupStateRequestData.PartitionData().setPartition(partition(step)).setLeaderEpoch(step.get("leader_epoch").asInt()))))));
        var partition = result.response().results().get(0).partitions().get(0);
        answer(entry, partition.errorCode(), partition.errorMessage(), () -> {
            ObjectNode value = MAPPER.createObjectNode().put("state_epoch", partition.stateEpoch()).put("start", partition.startOffset());
            value.set("batches", batches(partition.stateBatches().stream().map(PersisterStateBatch::from).toList()));
            return value;
        });
        return result;
    }

    private CoordinatorResult<?, CoordinatorRecord> summary(JsonNode step, ObjectNode entry) {
        var result = shard.readStateSummary(new ReadShareGroupStateSummaryRequestData().setGroupId(group(step)).setTopics(List.of(
            new ReadShareGroupStateSummaryRequestData.ReadStateSummaryData().setTopicId(topic(step)).setPartitions(List.of(
                new ReadShareGroupStateSummaryRequestData.PartitionData().setPartition(partition(step)))))));
        var partition = result.response().results().get(0).partitions().get(0);
        answer(entry, partition.errorCode(), partition.errorMessage(), () -> MAPPER.createObjectNode().put("state_epoch", partition.stateEpoch())
            .put("start", partition.startOffset()).put("complete", partition.deliveryCompleteCount()).put("leader_epoch", partition.leaderEpoch()));
        return result;
    }

    private CoordinatorResult<?, CoordinatorRecord> write(JsonNode step, ObjectNode entry) {
        var result = shard.writeState(new WriteShareGroupStateRequestData().setGroupId(group(step)).setTopics(List.of(
            new WriteShareGroupStateRequestData.WriteStateData().setTopicId(topic(step)).setPartitions(List.of(
                new WriteShareGroupStateRequestData.PartitionData().setPartition(partition(step)).setStateEpoch(step.get("state_epoch").asInt())
                    .setLeaderEpoch(step.get("leader_epoch").asInt()).setStartOffset(step.get("start").asLong())
                    .setDeliveryCompleteCount(step.get("complete").asInt())
                    .setStateBatches(batches(step.get("batches")).stream().map(each -> new WriteShareGroupStateRequestData.StateBatch()
                        .setFirstOffset(each.firstOffset()).setLastOffset(each.lastOffset()).setDeliveryState(each.deliveryState())
                        .setDeliveryCount(each.deliveryCount())).toList()))))));
        var partition = result.response().results().get(0).partitions().get(0);
        answer(entry, partition.errorCode(), partition.errorMessage(), MAPPER::createObjectNode);
        return result;
    }

    private CoordinatorResult<?, CoordinatorRecord> delete(JsonNode step, ObjectNode entry) {
        var result = shard.deleteState(new DeleteShareGroupStateRequestData().setGroupId(group(step)).setTopics(List.of(
            new DeleteShareGroupStateRequestData.DeleteStateData().setTopicId(topic(step)).setPartitions(List.of(
                new DeleteShareGroupStateRequestData.PartitionData().setPartition(partition(step)))))));
        var partition = result.response().results().get(0).partitions().get(0);
        answer(entry, partition.errorCode(), partition.errorMessage(), MAPPER::createObjectNode);
        return result;
    }

    // What is around it.

    private static final class Clock implements Time {
        private long now;

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    private record Topic(String name, Uuid id, int partitionCount) implements CoordinatorMetadataImage.TopicMetadata {
        @Override
        public List<String> partitionRacks(int partitionId) {
            return List.of();
        }
    }

    private record Image(Map<Uuid, Integer> topics) implements CoordinatorMetadataImage {
        @Override
        public Set<Uuid> topicIds() {
            return topics.keySet();
        }

        @Override
        public Set<String> topicNames() {
            return Set.of();
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(String topicName) {
            return Optional.empty();
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(Uuid topicId) {
            return Optional.ofNullable(topics.get(topicId)).map(count -> new Topic("t", topicId, count));
        }

        @Override
        public CoordinatorMetadataDelta emptyDelta() {
            return CoordinatorMetadataDelta.EMPTY;
        }

        @Override
        public long version() {
            return 0;
        }

        @Override
        public boolean isEmpty() {
            return topics.isEmpty();
        }
    }
}
