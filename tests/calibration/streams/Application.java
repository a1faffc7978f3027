import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.StandbyUpdateListener;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * One instance of a Kafka Streams application with a store: {@code Application TOPIC RECORDS_A_SECOND KEY=VALUE...}. It says, in
 * lines "MILLISECONDS WHAT ...", when tasks run and end and what is restored; SIGTERM closes it. It restores no faster than it
 * is told to.
 */
public final class Application {
    private static double recordsASecond;

    private static synchronized void say(String what, Object... rest) {
        StringBuilder line = new StringBuilder().append(System.currentTimeMillis()).append(' ').append(what);
        for (Object each : rest) {
            line.append(' ').append(each);
        }
        System.out.println(line);
        System.out.flush();
    }

    private static void takeTime(long records) {
        try {
            Thread.sleep((long) (records * 1000 / recordsASecond));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private static final class Stored implements Processor<byte[], byte[], Void, Void> {
        private KeyValueStore<byte[], byte[]> store;
        private TaskId task;

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            store = context.getStateStore("store");
            task = context.taskId();
            say("runs", task);
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            store.put(record.key(), record.value());
        }

        @Override
        public void close() {
            say("ends", task);
        }
    }

    private static final class Restores implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long start, long end) {
            say("restores", partition.partition(), start, end);
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long records) {
            takeTime(records);
        }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long records) {
            say("restored", partition.partition(), records);
        }

        @Override
        public void onRestoreSuspended(TopicPartition partition, String store, long records) {
            say("suspended", partition.partition(), records);
        }
    }

    private static final class Updates implements StandbyUpdateListener {
        @Override
        public void onUpdateStart(TopicPartition partition, String store, long start) {
            say("standby", partition.partition(), start);
        }

        @Override
        public void onBatchLoaded(TopicPartition partition, String store, TaskId task, long batchEnd, long records, long end) {
            takeTime(records);
        }

        @Override
        public void onUpdateSuspended(TopicPartition partition, String store, long offset, long end, SuspendReason reason) {
            say("standby-ends", partition.partition(), offset, reason);
        }
    }

    public static void main(String[] arguments) {
        recordsASecond = Double.parseDouble(arguments[1]);
        Properties settings = new Properties();
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        for (int each = 2; each < arguments.length; each++) {
            String[] pair = arguments[each].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        Topology topology = new Topology();
        topology.addSource("source", arguments[0]).addProcessor("processor", Stored::new, "source");
        var store = Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("store"), Serdes.ByteArray(), Serdes.ByteArray());
        topology.addStateStore(store.withCachingDisabled(), "processor");
        KafkaStreams streams = new KafkaStreams(topology, settings);
        streams.setGlobalStateRestoreListener(new Restores());
        streams.setStandbyUpdateListener(new Updates());
        streams.setStateListener((now, before) -> say("state", now));
        AtomicBoolean isOver = new AtomicBoolean();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            if (isOver.compareAndSet(false, true)) {
                say("closing");
                streams.close();
                say("closed");
            }
        }));
        streams.start();
        say("started");
    }
}
