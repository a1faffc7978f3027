package org.apache.kafka.coordinator.group;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.PriorityQueue;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEvent;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEventProcessor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorRuntimeMetrics;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Kafka's coordinator service, runtime and shard on one thread, in virtual time, over a log in memory. `Version` has the rest. */
abstract class VirtualBroker implements PartitionWriter, CoordinatorLoader<CoordinatorRecord> {
    static final long EPOCH_MS = 1_700_000_000_000L;
    static final TopicPartition LOG = new TopicPartition("__consumer_offsets", 0);

    /** What is in the log: a record, or the marker of a transaction. */
    record Appended(long offset, long producerId, CoordinatorRecord record, TransactionResult marker, byte[] key, byte[] value) { }

    interface AppendListener {
        void appended(Appended appended);
    }

    interface ClockListener {
        void before(long now);
    }

    /** What the coordinator has done elsewhere. */
    interface CallListener {
        void called(ObjectNode call);
    }

    final GroupCoordinatorService service;
    final GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
    final Map<String, Uuid> topicIds = new HashMap<>();
    final Map<Uuid, String> topicNames = new HashMap<>();
    /** Also those of topics that are gone: a member may still name their partitions. */
    final Map<String, Uuid> latestIds = new HashMap<>();
    GroupCoordinatorShard shard;
    CallListener callListener;
    final Clock clock = new Clock();
    final VirtualTimer timer = new VirtualTimer();
    private final Deque<Runnable> events = new ArrayDeque<>();
    private final List<MemoryRecords> log = new ArrayList<>();
    private final AppendListener appendListener;
    private final ClockListener clockListener;
    private Listener highWatermarkListener;
    private MetadataImage image = MetadataImage.EMPTY;
    private MetadataDelta together;
    private long endOffset;
    private int epoch;
    private boolean running;

    VirtualBroker(Map<String, String> properties, AppendListener appendListener, ClockListener clockListener) {
        this.appendListener = appendListener;
        this.clockListener = clockListener;
        this.service = start(properties);
        service.startup(() -> 1);
    }

    // What differs from version to version.

    /** The service, over this log, clock and timer; it tells `shard` what it has built. */
    abstract GroupCoordinatorService start(Map<String, String> properties);

    /** What a broker tells its coordinator of new metadata, and of topics that are gone. */
    abstract void tell(MetadataDelta delta, MetadataImage image, List<TopicPartition> deleted);

    /** Of the topics that the request names, or of all where it names none. */
    abstract CompletableFuture<OffsetFetchResponseData.OffsetFetchResponseGroup> fetch(
        RequestContext context, OffsetFetchRequestData.OffsetFetchRequestGroup request, boolean stable);

    /** Steps about share and streams groups, where the version has them; nothing else is left. */
    CompletableFuture<ObjectNode> newer(JsonNode step) {
        throw new IllegalArgumentException("unknown op " + step);
    }

    /** Says more of a share or streams group than its state, where the version has them. */
    void showNewer(ObjectNode node, Group group, GroupMetadataManager manager, Dump dump) { }

    abstract CompletableFuture<Void> endTransaction(long producerId, TransactionResult result);

    /** What all versions set in the same way. */
    CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord> runtime() {
        return new CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord>()
            .withTime(clock).withTimer(timer).withLogContext(new LogContext())
            .withEventProcessor(new Events()).withPartitionWriter(this).withLoader(this)
            .withCoordinatorRuntimeMetrics(new GroupCoordinatorRuntimeMetrics(new Metrics()))
            .withSerializer(serde).withExecutorService(new Background());
    }

    GroupCoordinatorShard built(GroupCoordinatorShard built) {
        shard = built;
        return built;
    }

    void called(ObjectNode call) {
        if (callListener != null) callListener.called(call);
    }

    long now() {
        return clock.milliseconds() - EPOCH_MS;
    }

    void elect() {
        service.onElection(LOG.partition(), ++epoch);
    }

    void reload() {
        service.onResignation(LOG.partition(), OptionalInt.of(++epoch));
        elect();
    }

    /** Puts a record into the log as if it had always been there; for the world before the first step. */
    void preload(MemoryRecords records) {
        append(records);
    }

    /** Runs everything that is ready, background work included, unless that is under way already. */
    private void settle() {
        if (running) return;
        running = true;
        try {
            while (!events.isEmpty()) events.removeFirst().run();
        } finally {
            running = false;
        }
    }

    /** Lets all timers up to and including this time fire, each at its own time, in the order of deadline and arming. */
    void advanceTo(long time) {
        long wall = time + EPOCH_MS;
        for (TimerTaskEntry due = timer.next(wall); due != null; due = timer.next(wall)) {
            setClock(due.expirationMs);
            due.timerTask.run();
        }
        setClock(wall);
    }

    private void setClock(long wall) {
        if (wall <= clock.now) return;
        clockListener.before(clock.now - EPOCH_MS);
        clock.now = wall;
    }

    /** Several changes of topics that the coordinator sees as one. */
    void topicsAtOnce(Runnable changes) {
        together = new MetadataDelta.Builder().setImage(image).build();
        changes.run();
        MetadataDelta delta = together;
        together = null;
        publish(delta);
    }

    void setTopic(String name, Uuid id, int partitions) {
        MetadataDelta delta = together != null ? together : new MetadataDelta.Builder().setImage(image).build();
        int from = 0;
        if (id.equals(topicIds.get(name)) && image.topics().getTopic(id) != null) {
            from = image.topics().getTopic(id).partitions().size();
        } else {
            delta.replay(new TopicRecord().setName(name).setTopicId(id));
        }
        for (int partition = from; partition < partitions; partition++) {
            delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(partition)
                .setReplicas(List.of(1)).setIsr(List.of(1)).setLeader(1).setLeaderEpoch(0).setPartitionEpoch(0));
        }
        topicIds.put(name, id);
        latestIds.put(name, id);
        topicNames.put(id, name);
        if (together == null) publish(delta);
    }

    void deleteTopic(String name) {
        if (image.topics().getTopic(name) == null) return;
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        List<TopicPartition> partitions = new ArrayList<>();
        image.topics().getTopic(name).partitions().keySet().forEach(partition -> partitions.add(new TopicPartition(name, partition)));
        delta.replay(new RemoveTopicRecord().setTopicId(image.topics().getTopic(name).id()));
        topicIds.remove(name);
        publish(delta, partitions);
    }

    private void publish(MetadataDelta delta) {
        publish(delta, List.of());
    }

    private void publish(MetadataDelta delta, List<TopicPartition> deleted) {
        image = delta.apply(new MetadataProvenance(image.provenance().lastContainedOffset() < 0 ? 1 : image.provenance().lastContainedOffset() + 1,
            0, 0, true));
        tell(delta, image, deleted);
    }

    // The log.

    long append(MemoryRecords records) {
        ByteBuffer copy = ByteBuffer.allocate(records.sizeInBytes());
        copy.put(records.buffer().duplicate()).flip();
        MemoryRecords kept = MemoryRecords.readableRecords(copy);
        for (MutableRecordBatch batch : kept.batches()) {
            batch.setLastOffset(endOffset + batch.lastOffset() - batch.baseOffset());
            for (Record record : batch) appendListener.appended(read(batch, record));
            endOffset = batch.nextOffset();
        }
        log.add(kept);
        if (highWatermarkListener != null) highWatermarkListener.onHighWatermarkUpdated(LOG, endOffset);
        return endOffset;
    }

    private Appended read(MutableRecordBatch batch, Record record) {
        long producerId = batch.isTransactional() ? batch.producerId() : -1;
        if (batch.isControlBatch()) {
            boolean committed = ControlRecordType.parse(record.key()) == ControlRecordType.COMMIT;
            return new Appended(record.offset(), producerId, null, committed ? TransactionResult.COMMIT : TransactionResult.ABORT, null, null);
        }
        return new Appended(record.offset(), producerId, serde.deserialize(record.key(), record.value()), null,
            bytes(record.key()), bytes(record.value()));
    }

    private static byte[] bytes(ByteBuffer buffer) {
        if (buffer == null) return null;
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    @Override
    public CompletableFuture<LoadSummary> load(TopicPartition tp, CoordinatorPlayback<CoordinatorRecord> coordinator) {
        for (MemoryRecords records : log) {
            for (MutableRecordBatch batch : records.batches()) {
                for (Record record : batch) {
                    Appended entry = read(batch, record);
                    if (entry.marker() != null) {
                        coordinator.replayEndTransactionMarker(batch.producerId(), batch.producerEpoch(), entry.marker());
                    } else {
                        coordinator.replay(record.offset(), batch.producerId(), batch.producerEpoch(), entry.record());
                    }
                }
            }
        }
        if (endOffset > 0) {
            coordinator.updateLastWrittenOffset(endOffset);
            coordinator.updateLastCommittedOffset(endOffset);
        }
        return CompletableFuture.completedFuture(new LoadSummary(0, 0, 0, endOffset, 0));
    }

    @Override
    public void registerListener(TopicPartition tp, Listener listener) {
        highWatermarkListener = listener;
        listener.onHighWatermarkUpdated(tp, endOffset);
    }

    @Override
    public void deregisterListener(TopicPartition tp, Listener listener) {
        highWatermarkListener = null;
    }

    @Override
    public LogConfig config(TopicPartition tp) {
        return new LogConfig(Map.of());
    }

    @Override
    public CompletableFuture<Void> deleteRecords(TopicPartition tp, long deleteBeforeOffset) {
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public void close() { }

    // Time, timers, threads.

    static final class Clock implements Time {
        private long now = EPOCH_MS;

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return TimeUnit.MILLISECONDS.toNanos(now);
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

    final class VirtualTimer implements Timer {
        private record Armed(TimerTaskEntry entry, long number) { }

        private final PriorityQueue<Armed> armed =
            new PriorityQueue<>(Comparator.<Armed>comparingLong(a -> a.entry.expirationMs).thenComparingLong(Armed::number));
        private long number;

        @Override
        public void add(TimerTask task) {
            armed.add(new Armed(new TimerTaskEntry(task, clock.now + task.delayMs), number++));
        }

        TimerTaskEntry next(long until) {
            while (!armed.isEmpty() && armed.peek().entry.expirationMs <= until) {
                TimerTaskEntry entry = armed.poll().entry;
                if (!entry.cancelled()) return entry;
            }
            return null;
        }

        @Override
        public boolean advanceClock(long timeoutMs) {
            return false;
        }

        @Override
        public int size() {
            return armed.size();
        }

        @Override
        public void close() { }
    }

    private final class Events implements CoordinatorEventProcessor {
        private Runnable guarded(CoordinatorEvent event) {
            return () -> {
                try {
                    event.run();
                } catch (Throwable failure) {
                    event.complete(failure);
                }
            };
        }

        @Override
        public void enqueueLast(CoordinatorEvent event) {
            events.addLast(guarded(event));
            settle();
        }

        @Override
        public void enqueueFirst(CoordinatorEvent event) {
            events.addFirst(guarded(event));
            settle();
        }

        @Override
        public void close() { }
    }

    private final class Background extends AbstractExecutorService {
        @Override
        public void execute(Runnable command) {
            events.addLast(command);
            settle();
        }

        @Override
        public void shutdown() { }

        @Override
        public List<Runnable> shutdownNow() {
            return List.of();
        }

        @Override
        public boolean isShutdown() {
            return false;
        }

        @Override
        public boolean isTerminated() {
            return false;
        }

        @Override
        public boolean awaitTermination(long timeout, TimeUnit unit) {
            return true;
        }
    }
}
