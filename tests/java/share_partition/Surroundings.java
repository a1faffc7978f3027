package kafka.server.share;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

import com.fasterxml.jackson.databind.JsonNode;
import kafka.server.ReplicaManager;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.NotLeaderOrFollowerException;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.ShareGroupAutoOffsetResetStrategy;
import org.apache.kafka.server.share.fetch.DelayedShareFetchKey;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateResult;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateResult;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.share.persister.ReadShareGroupStateParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryResult;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;
import org.apache.kafka.storage.internals.log.OffsetResultHolder;
import scala.Option;
import sun.misc.Unsafe;

/** What a share partition has around it in a broker: a clock and a timer that are moved, a persister whose answers are steps, a log. */
final class Surroundings {
    private Surroundings() { }

    private static <T> T withoutConstructor(Class<T> type) {
        try {
            Field field = Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return type.cast(((Unsafe) field.get(null)).allocateInstance(type));
        } catch (ReflectiveOperationException failure) {
            throw new IllegalStateException(failure);
        }
    }

    static final class Clock implements Time {
        long now;

        @Override public long milliseconds() { return now; }
        @Override public long nanoseconds() { return now * 1_000_000; }
        @Override public void sleep(long ms) { throw new UnsupportedOperationException(); }
        @Override public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    /** Tasks run by their time, then in the order in which they were added. */
    static final class ManualTimer implements Timer {
        private final Clock clock;
        private final List<TimerTaskEntry> entries = new ArrayList<>();

        ManualTimer(Clock clock) { this.clock = clock; }

        @Override public void add(TimerTask task) { entries.add(new TimerTaskEntry(task, clock.now + task.delayMs)); }
        @Override public boolean advanceClock(long timeoutMs) { throw new UnsupportedOperationException(); }
        @Override public int size() { return pending().size(); }
        @Override public void close() { entries.clear(); }

        List<Long> pending() {
            entries.removeIf(TimerTaskEntry::cancelled);
            return entries.stream().map(entry -> entry.expirationMs).sorted().toList();
        }

        void expire() {
            while (true) {
                entries.removeIf(TimerTaskEntry::cancelled);
                Optional<TimerTaskEntry> first = entries.stream().filter(entry -> entry.expirationMs <= clock.now)
                    .min(Comparator.comparingLong(entry -> entry.expirationMs));
                if (first.isEmpty()) return;
                entries.remove(first.get());
                first.get().timerTask.run();
            }
        }
    }

    /** Keeps what it is asked until a step answers. */
    static final class ManualPersister implements Persister {
        final List<CompletableFuture<WriteShareGroupStateResult>> writes = new ArrayList<>();
        CompletableFuture<ReadShareGroupStateResult> reading;
        private final java.util.function.Consumer<ReadShareGroupStateParameters> onRead;
        private final java.util.function.Consumer<WriteShareGroupStateParameters> onWrite;

        ManualPersister(
            java.util.function.Consumer<ReadShareGroupStateParameters> onRead,
            java.util.function.Consumer<WriteShareGroupStateParameters> onWrite
        ) {
            this.onRead = onRead;
            this.onWrite = onWrite;
        }

        @Override public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
            onRead.accept(request);
            reading = new CompletableFuture<>();
            return reading;
        }

        @Override public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
            CompletableFuture<WriteShareGroupStateResult> writing = new CompletableFuture<>();
            writes.add(writing);
            onWrite.accept(request);
            return writing;
        }

        @Override public CompletableFuture<InitializeShareGroupStateResult> initializeState(InitializeShareGroupStateParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(ReadShareGroupStateSummaryParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override public void stop() { }
    }

    /** A log whose first and last offset, and the one of any time between, the step says; or it is led elsewhere. */
    static class Log extends ReplicaManager {
        private Runnable onFetchesMayComplete;
        JsonNode reset;

        Log() {
            super(null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null);
        }

        static Log of(Runnable onFetchesMayComplete) {
            Log log = withoutConstructor(Log.class);
            log.onFetchesMayComplete = onFetchesMayComplete;
            return log;
        }

        @Override public void completeDelayedShareFetchRequest(DelayedShareFetchKey key) { onFetchesMayComplete.run(); }

        @Override public OffsetResultHolder fetchOffsetForTimestamp(
            TopicPartition partition, long timestamp, Option<IsolationLevel> isolation, Optional<Integer> leaderEpoch, boolean onlyLeader
        ) {
            if (reset.isTextual()) throw new NotLeaderOrFollowerException(reset.asText());
            String asked = timestamp == ListOffsetsRequest.EARLIEST_TIMESTAMP ? "earliest"
                : timestamp == ListOffsetsRequest.LATEST_TIMESTAMP ? "latest" : "by_duration";
            return new OffsetResultHolder(new FileRecords.TimestampAndOffset(0, reset.get(asked).asLong(), Optional.empty()));
        }
    }

    /** The group's settings, which steps change. Fields are set, since Kafka's own bounds would make every sequence a long one. */
    static GroupConfig settings(JsonNode values) {
        GroupConfig config = new GroupConfig(Map.of("share.auto.offset.reset", values.path("auto_offset_reset").asText("latest")));
        set(config, "shareDeliveryCountLimit", values.get("delivery_count_limit").asInt());
        set(config, "sharePartitionMaxRecordLocks", values.get("max_record_locks").asInt());
        set(config, "shareRecordLockDurationMs", values.get("record_lock_duration_ms").asInt());
        set(config, "shareRenewAcknowledgeEnable", values.get("renew_acknowledge_enable").asBoolean());
        return config;
    }

    private static void set(GroupConfig config, String name, Object value) {
        try {
            Field field = GroupConfig.class.getDeclaredField(name);
            field.setAccessible(true);
            field.set(config, value);
        } catch (ReflectiveOperationException failure) {
            throw new IllegalStateException(failure);
        }
    }

    static class Groups extends GroupConfigManager {
        GroupConfig settings;

        private Groups() { super(Map.of(), null, null); }

        static Groups of(JsonNode values) {
            Groups groups = withoutConstructor(Groups.class);
            groups.settings = settings(values);
            return groups;
        }

        @Override public Optional<GroupConfig> groupConfig(String groupId) { return Optional.of(settings); }
    }
}
