package kafka.server.share;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ShareFetchResponseData.AcquiredRecords;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.fetch.RecordState;
import org.apache.kafka.server.share.fetch.ShareAcquiredRecords;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionStateBatchData;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;

/**
 * What Apache Kafka's own SharePartition does with a sequence of steps, in virtual time.
 *
 * One JSON object a line comes in (given, steps), one goes out: {"expect": [...]} with one entry a step, or {"failure": "..."}.
 */
public final class Oracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Uuid TOPIC_ID = new Uuid(0, 1);
    private static final TopicIdPartition PARTITION = new TopicIdPartition(TOPIC_ID, new TopicPartition("t", 0));

    private final JsonNode sequence;
    private final Surroundings.Clock clock = new Surroundings.Clock();
    private final Surroundings.ManualTimer timer = new Surroundings.ManualTimer(clock);
    private final Surroundings.ManualPersister persister;
    private final Surroundings.Log log;
    private final Surroundings.Groups groups;
    private final SharePartition partition;
    private ArrayNode events = MAPPER.createArrayNode();

    private Oracle(JsonNode sequence) {
        this.sequence = sequence;
        JsonNode given = sequence.get("given");
        groups = Surroundings.Groups.of(given.get("settings"));
        log = Surroundings.Log.of(() -> events.addArray().add("fetches"));
        persister = new Surroundings.ManualPersister(
            read -> events.addArray().add("read")
                .add(read.groupTopicPartitionData().topicsData().get(0).partitions().get(0).leaderEpoch()),
            written -> write(written.groupTopicPartitionData().topicsData().get(0).partitions().get(0)));
        partition = new SharePartition("g", PARTITION, given.get("leader_epoch").asInt(), 1, 1, 1, timer, clock, persister, log,
            groups, null);
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = MAPPER.createObjectNode();
            try {
                answer.set("expect", new Oracle(MAPPER.readTree(line)).run());
            } catch (Throwable failure) {
                List<StackTraceElement> trace = List.of(failure.getStackTrace());
                answer.put("failure", failure + " at " + trace.subList(0, Math.min(12, trace.size())));
            }
            out.println(MAPPER.writeValueAsString(answer));
            out.flush();
        }
    }

    private ArrayNode run() {
        ArrayNode expect = MAPPER.createArrayNode();
        for (JsonNode step : sequence.get("steps")) {
            events = MAPPER.createArrayNode();
            clock.now = step.get("at").asLong();
            ObjectNode entry = expect.addObject();
            JsonNode result = step(step);
            if (result != null) entry.set("result", result);
            entry.set("events", events);
            entry.set("state", state());
        }
        return expect;
    }

    private JsonNode step(JsonNode step) {
        switch (step.get("op").asText()) {
            case "initialize" -> settle(step, () -> partition.maybeInitialize());
            case "read" -> read(step);
            case "lock" -> {
                return MAPPER.getNodeFactory().booleanNode(partition.maybeAcquireFetchLock(new Uuid(1, step.get("fetch").asLong())));
            }
            case "unlock" -> partition.releaseFetchLock(new Uuid(1, step.get("fetch").asLong()));
            case "acquire" -> {
                return acquire(step);
            }
            case "acknowledge" -> settle(step, () -> partition.acknowledge(step.get("member").asText(), acknowledgements(step)));
            case "release" -> settle(step, () -> partition.releaseAcquiredRecords(step.get("member").asText()));
            case "written" -> written(step);
            case "expire" -> timer.expire();
            case "log_start" -> partition.updateCacheAndOffsets(step.get("offset").asLong());
            case "fence" -> partition.markFenced();
            case "settings" -> groups.settings = Surroundings.settings(step.get("settings"));
            case "look" -> {
                return MAPPER.createArrayNode().add(partition.canAcquireRecords()).add(partition.nextFetchOffset());
            }
            default -> throw new IllegalArgumentException(step.toString());
        }
        return null;
    }

    private interface Call {
        CompletableFuture<Void> make();
    }

    private void settle(JsonNode step, Call call) {
        int ticket = step.get("ticket").asInt();
        try {
            call.make().whenComplete((nothing, failure) -> {
                ArrayNode done = events.addArray().add("done").add(ticket);
                if (failure != null) done.add(Errors.forException(failure).name()).add(failure.getMessage()).add(false);
            });
        } catch (RuntimeException failure) {
            events.addArray().add("done").add(ticket).add("UNKNOWN_SERVER_ERROR").addNull().add(true);
        }
    }

    private void read(JsonNode step) {
        log.reset = step.get("reset");
        List<PersisterStateBatch> batches = new ArrayList<>();
        step.path("batches").forEach(each -> batches.add(new PersisterStateBatch(
            each.get(0).asLong(), each.get(1).asLong(), (byte) each.get(2).asInt(), (short) each.get(3).asInt())));
        persister.reading.complete(new ReadShareGroupStateResult.Builder().setTopicsData(List.of(new TopicData<>(TOPIC_ID, List.of(
            PartitionFactory.newPartitionAllData(0, step.path("state_epoch").asInt(), step.path("start_offset").asLong(), error(step),
                step.path("message").asText(null), batches))))).build());
    }

    private void written(JsonNode step) {
        persister.writes.get(step.get("token").asInt() - 1).complete(new WriteShareGroupStateResult.Builder().setTopicsData(List.of(
            new TopicData<>(TOPIC_ID, List.of(PartitionFactory.newPartitionErrorData(0, error(step), step.path("message").asText(null)))))).build());
    }

    private static short error(JsonNode step) {
        return Errors.valueOf(step.path("error").asText("NONE")).code();
    }

    private static List<ShareAcknowledgementBatch> acknowledgements(JsonNode step) {
        List<ShareAcknowledgementBatch> batches = new ArrayList<>();
        for (JsonNode each : step.get("batches")) {
            List<Byte> types = new ArrayList<>();
            each.get(2).forEach(type -> types.add((byte) type.asInt()));
            batches.add(new ShareAcknowledgementBatch(each.get(0).asLong(), each.get(1).asLong(), types));
        }
        return batches;
    }

    private JsonNode acquire(JsonNode step) {
        Records records = records(step.get("batches"));
        Optional<List<FetchResponseData.AbortedTransaction>> aborted = Optional.empty();
        boolean committed = step.has("aborted");
        if (committed) {
            List<FetchResponseData.AbortedTransaction> found = new ArrayList<>();
            step.get("aborted").forEach(each -> found.add(new FetchResponseData.AbortedTransaction()
                .setProducerId(each.get(0).asLong()).setFirstOffset(each.get(1).asLong())));
            aborted = Optional.of(found);
        }
        FetchPartitionData data = new FetchPartitionData(Errors.NONE, 0, 0, records, Optional.empty(), OptionalLong.empty(), aborted,
            OptionalInt.empty(), false);
        try {
            return acquired(records, partition.acquire(step.get("member").asText(), ShareAcquireMode.forId((byte) step.get("mode").asInt()),
                step.get("batch_size").asInt(), step.get("max").asInt(), step.get("offset").asLong(), data,
                committed ? FetchIsolation.TXN_COMMITTED : FetchIsolation.HIGH_WATERMARK));
        } catch (RuntimeException failure) {
            return MAPPER.createObjectNode().put("thrown", failure.getMessage());
        }
    }

    private static JsonNode acquired(Records records, ShareAcquiredRecords acquired) {
        ObjectNode found = MAPPER.createObjectNode().put("count", acquired.count());
        ArrayNode ranges = found.putArray("records");
        for (AcquiredRecords each : acquired.acquiredRecords())
            ranges.addArray().add(each.firstOffset()).add(each.lastOffset()).add(each.deliveryCount());
        if (!acquired.acquiredRecords().isEmpty()) {
            ArrayNode sent = found.putArray("sent");
            for (RecordBatch batch : ShareFetchUtils.maybeSliceFetchRecords(records, acquired).batches()) sent.add(batch.baseOffset());
        }
        return found;
    }

    /** Batches as [first offset, last offset, producer id, kind], of which the middle may have been compacted away. */
    private static Records records(JsonNode batches) {
        ByteBuffer buffer = ByteBuffer.allocate(256 * (batches.size() + 1));
        for (JsonNode each : batches) {
            long producerId = each.get(2).asLong();
            String kind = each.get(3).asText();
            if (kind.equals("commit") || kind.equals("abort")) {
                MemoryRecords.writeEndTransactionalMarker(buffer, each.get(0).asLong(), 0, 0, producerId, (short) 0,
                    new EndTransactionMarker(kind.equals("commit") ? ControlRecordType.COMMIT : ControlRecordType.ABORT, 0));
                continue;
            }
            MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE,
                TimestampType.CREATE_TIME, each.get(0).asLong(), 0, producerId, (short) (producerId < 0 ? -1 : 0), producerId < 0 ? -1 : 0,
                kind.equals("txn"), 0);
            builder.append(new SimpleRecord(0, new byte[0]));
            builder.overrideLastOffset(each.get(1).asLong());
            builder.close();
        }
        buffer.flip();
        return MemoryRecords.readableRecords(buffer);
    }

    private void write(PartitionStateBatchData data) {
        ArrayNode batches = events.addArray().add("write").add(persister.writes.size()).add(data.stateEpoch()).add(data.leaderEpoch())
            .add(data.startOffset()).add(data.deliveryCompleteCount()).addArray();
        for (PersisterStateBatch each : data.stateBatches())
            batches.addArray().add(each.firstOffset()).add(each.lastOffset()).add(each.deliveryState()).add(each.deliveryCount());
    }

    private ObjectNode state() {
        ObjectNode node = MAPPER.createObjectNode();
        node.put("status", partition.partitionState().name());
        node.put("start", partition.startOffset());
        node.put("end", partition.endOffset());
        node.put("epoch", partition.stateEpoch());
        node.put("complete", partition.deliveryCompleteCount());
        node.put("find", partition.findNextFetchOffset());
        node.put("locked", partition.fetchLock() != null);
        SharePartition.GapWindow gap = partition.persisterReadResultGapWindow();
        if (gap != null) node.putArray("gap").add(gap.gapStartOffset()).add(gap.endOffset());
        ArrayNode timers = node.putArray("timers");
        timer.pending().forEach(timers::add);
        ArrayNode cache = node.putArray("cache");
        for (InFlightBatch batch : partition.cachedState().values()) {
            ArrayNode entry = cache.addArray().add(batch.firstOffset()).add(batch.lastOffset());
            if (batch.offsetState() == null) {
                entry.add(state(batch.batchState(), batch.batchDeliveryCount(), batch.batchMemberId(),
                    batch.batchHasOngoingStateTransition(), batch.batchAcquisitionLockTimeoutTask()));
            } else {
                ArrayNode offsets = entry.addArray();
                for (InFlightState each : batch.offsetState().values())
                    offsets.add(state(each.state(), each.deliveryCount(), each.memberId(), each.hasOngoingStateTransition(),
                        each.acquisitionLockTimeoutTask()));
            }
        }
        return node;
    }

    private static String state(
        RecordState state, int count, String member, boolean ongoing, org.apache.kafka.server.share.fetch.AcquisitionLockTimerTask lock
    ) {
        return state + " " + count + " " + member + " " + ongoing + " " + (lock == null ? "-" : lock.expirationMs() + " " + lock.hasExpired());
    }
}
