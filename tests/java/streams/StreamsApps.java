import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.StreamsGroupDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsMetadata;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueStore;

/** Plays with applications of Kafka Streams: each scenario under a name of its own, and one line of what was seen. */
public final class StreamsApps {
    private static final long PATIENCE_MS = 60_000;
    private static final String POISON = "poison";
    private static final Map<String, Object> ONCE = Map.of("processing.guarantee", "exactly_once_v2");

    private final String bootstrap;
    private final File folder;
    private final Admin admin;
    private final List<App> apps = new ArrayList<>();
    private final List<String> seen = new ArrayList<>();
    private String name;
    private int produced;

    private interface Scenario {
        void run() throws Exception;
    }

    private StreamsApps(String bootstrap, String folder) {
        this.bootstrap = bootstrap;
        this.folder = new File(folder);
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] arguments) throws Exception {
        StreamsApps it = new StreamsApps(arguments[0], arguments[1]);
        Map<String, Scenario> scenarios = new LinkedHashMap<>();
        scenarios.put("counts", it::counts);
        scenarios.put("once", () -> it.once(ONCE));
        scenarios.put("classic", () -> it.once(Map.of("processing.guarantee", "exactly_once_v2", "group.protocol", "classic")));
        scenarios.put("rolling", it::rolling);
        scenarios.put("scaling", it::scaling);
        scenarios.put("restoring", it::restoring);
        scenarios.put("standby", it::standby);
        scenarios.put("failing", it::failing);
        scenarios.put("shutdown", it::shutdown);
        scenarios.put("missing", it::missing);
        scenarios.put("late", it::late);
        scenarios.put("changed", it::changed);
        scenarios.put("unequal", it::unequal);
        scenarios.put("queries", it::queries);
        for (Map.Entry<String, Scenario> each : scenarios.entrySet()) {
            if (arguments.length > 2 && !List.of(arguments).contains(each.getKey())) {
                continue;
            }
            it.play(each.getKey(), each.getValue());
        }
        it.admin.close(Duration.ZERO);
        Runtime.getRuntime().halt(0);
    }

    private void play(String subject, Scenario scenario) throws Exception {
        name = subject + "-" + UUID.randomUUID();
        produced = 0;
        try {
            scenario.run();
        } catch (Exception error) {
            seen.add("failed " + error);
        }
        for (App app : apps) {
            app.close();
        }
        System.out.println(subject + ": " + String.join("; ", seen).replace(name, "NAME"));
        System.out.flush();
        apps.clear();
        seen.clear();
    }

    /** An instance with one thread, with a state folder of its own, which another one may go on with. */
    private final class App {
        final int number;
        final KafkaStreams streams;
        final AtomicLong restored = new AtomicLong();
        final AtomicReference<Throwable> failure = new AtomicReference<>();

        App(int number, Topology topology, Map<String, Object> settings, StreamThreadExceptionResponse response) {
            this.number = number;
            Properties given = new Properties();
            given.put("bootstrap.servers", bootstrap);
            given.put("application.id", name);
            given.put("client.id", name + "-" + number);
            given.put("group.protocol", "streams");
            given.put("state.dir", state(number).getPath());
            given.put("commit.interval.ms", "100");
            given.put("metadata.max.age.ms", "1000");
            given.put("repartition.purge.interval.ms", "100");
            given.put("default.key.serde", Serdes.StringSerde.class.getName());
            given.put("default.value.serde", Serdes.StringSerde.class.getName());
            given.put("auto.offset.reset", "earliest");
            given.put("statestore.cache.max.bytes", "0");
            given.putAll(settings);
            streams = new KafkaStreams(topology, given);
            streams.setUncaughtExceptionHandler(error -> {
                failure.compareAndSet(null, error);
                return response;
            });
            streams.setGlobalStateRestoreListener(new StateRestoreListener() {
                public void onRestoreStart(TopicPartition partition, String store, long from, long to) { }

                public void onBatchRestored(TopicPartition partition, String store, long end, long count) {
                    restored.addAndGet(count);
                }

                public void onRestoreEnd(TopicPartition partition, String store, long total) { }
            });
            streams.start();
        }

        void close() {
            streams.close(Duration.ofSeconds(30));
        }

        int active() {
            return streams.metadataForLocalThreads().stream().mapToInt(each -> each.activeTasks().size()).sum();
        }

        int standby() {
            return streams.metadataForLocalThreads().stream().mapToInt(each -> each.standbyTasks().size()).sum();
        }

        String why() {
            Throwable error = failure.get();
            while (error != null && error.getCause() != null) {
                error = error.getCause();
            }
            return error == null ? "nothing" : error.toString().replaceAll("after \\d+ms", "after a while").replaceAll("(?s)\\R.*", "");
        }
    }

    private File state(int number) {
        return new File(folder, name + "-" + number);
    }

    private App start(int number, Map<String, Object> settings) {
        return start(number, words(), settings, StreamThreadExceptionResponse.SHUTDOWN_CLIENT);
    }

    private App start(int number, Topology topology, Map<String, Object> settings, StreamThreadExceptionResponse response) {
        App app = new App(number, topology, settings, response);
        apps.add(app);
        return app;
    }

    private void stop(App app) {
        app.close();
        apps.remove(app);
    }

    /** Counts words: two subtopologies, a topic between them, a store, one record out for each word. */
    private Topology words() {
        StreamsBuilder builder = new StreamsBuilder();
        counted(builder.<String, String>stream(name + "-in").flatMapValues(text -> {
            if (text.equals(POISON) && apps.stream().allMatch(app -> app.failure.get() == null)) {
                throw new IllegalStateException("poisoned");
            }
            return Arrays.asList(text.split(" "));
        }));
        return builder.build();
    }

    private void counted(KStream<String, String> words) {
        words.groupBy((key, word) -> word, Grouped.as("words"))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts"))
            .toStream()
            .mapValues(count -> count.toString())
            .to(name + "-out");
    }

    private void topic(String topic, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(name + topic, partitions, (short) 1))).all().get();
        until(() -> admin.describeTopics(List.of(name + topic)).allTopicNames().get().size() == 1);
    }

    private void topics(int partitions) throws Exception {
        topic("-in", partitions);
        topic("-out", 1);
    }

    private void say(String... texts) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap);
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            int partitions = producer.partitionsFor(name + "-in").size();
            for (int at = 0; at < texts.length; at++) {
                producer.send(new ProducerRecord<>(name + "-in", at % partitions, null, texts[at])).get();
                produced += texts[at].split(" ").length;
            }
        }
    }

    /** The counts of each word in their order, when there are as many as words were said. */
    private Map<String, List<String>> out() throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed");
        Map<String, List<String>> found = new TreeMap<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> all = List.of(new TopicPartition(name + "-out", 0));
            consumer.assign(all);
            consumer.seekToBeginning(all);
            int[] count = {0};
            until(() -> {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    found.computeIfAbsent(record.key(), word -> new ArrayList<>()).add(record.value());
                    count[0]++;
                }
                return count[0] >= produced;
            });
        }
        return found;
    }

    private void tell() throws Exception {
        Map<String, List<String>> found = out();
        boolean isOnce = true;
        List<String> last = new ArrayList<>();
        for (Map.Entry<String, List<String>> each : found.entrySet()) {
            List<String> counts = each.getValue();
            last.add(each.getKey() + "=" + counts.get(counts.size() - 1));
            for (int at = 0; at < counts.size(); at++) {
                isOnce &= counts.get(at).equals(String.valueOf(at + 1));
            }
        }
        seen.add(String.join(" ", last) + (isOnce ? ", each once" : ", " + found));
    }

    private static boolean until(Callable<Boolean> isSo) throws Exception {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (System.currentTimeMillis() < end) {
            try {
                if (isSo.call()) {
                    return true;
                }
            } catch (java.util.concurrent.ExecutionException error) {
                // not there yet
            }
            Thread.sleep(20);
        }
        return false;
    }

    private void expect(String what, Callable<Boolean> isSo) throws Exception {
        if (!until(isSo)) {
            seen.add("never " + what);
        }
    }

    private void configure(String key, String value) throws Exception {
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, name), List.of(change))).all().get();
    }

    private void spread(int count) throws Exception {
        expect(count + " instances with tasks", () -> apps.size() == count && apps.stream().allMatch(app -> app.active() > 0)
            && apps.stream().mapToInt(App::active).sum() == 8);
        seen.add("tasks " + apps.stream().map(App::active).sorted().collect(Collectors.toList()));
    }

    /** The topics that Kafka Streams had made, with partitions and settings. */
    private void internal() throws Exception {
        Set<String> topics = new TreeSet<>();
        for (String topic : admin.listTopics().names().get()) {
            if (topic.startsWith(name) && (topic.endsWith("-repartition") || topic.endsWith("-changelog"))) {
                topics.add(topic);
            }
        }
        for (String topic : topics) {
            int partitions = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
            Config config = admin.describeConfigs(List.of(new ConfigResource(ConfigResource.Type.TOPIC, topic))).all().get()
                .values().iterator().next();
            Set<String> own = new TreeSet<>();
            config.entries().stream().filter(entry -> entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG)
                .forEach(entry -> own.add(entry.name() + "=" + entry.value()));
            seen.add(topic + " " + partitions + " " + own);
        }
    }

    private StreamsGroupDescription described() throws Exception {
        return admin.describeStreamsGroups(List.of(name)).all().get().get(name);
    }

    private void counts() throws Exception {
        topics(2);
        say("a b a", "b c");
        start(0, Map.of("num.stream.threads", 2));
        tell();
        internal();
        expect("stable", () -> described().groupState().toString().equals("Stable") && described().members().size() == 2);
        StreamsGroupDescription group = described();
        group.subtopologies().forEach(each -> seen.add(each.subtopologyId() + " " + each.sourceTopics() + " "
            + each.repartitionSourceTopics().keySet() + " " + each.repartitionSinkTopics() + " "
            + each.stateChangelogTopics().keySet()));
        TopicPartition between = new TopicPartition(name + "-words-repartition", 0);
        expect("purged", () -> admin.listOffsets(Map.of(between, OffsetSpec.earliest())).all().get().get(between).offset()
            == admin.listOffsets(Map.of(between, OffsetSpec.latest())).all().get().get(between).offset());
        stop(apps.get(0));
        expect("empty", () -> described().groupState().toString().equals("Empty"));
        seen.add("then " + described().groupState() + " " + described().members().size());
    }

    private void once(Map<String, Object> settings) throws Exception {
        topics(2);
        say("a b a", "b c", "a", "c");
        start(0, settings);
        start(1, settings);
        tell();
        say("d", "a a");
        tell();
    }

    private void rolling() throws Exception {
        topics(4);
        start(0, ONCE);
        start(1, ONCE);
        say("a b", "b c", "c d", "d a");
        tell();
        for (int number = 0; number < 2; number++) {
            stop(apps.get(0));
            say("a", "b", "c", "d");
            start(number, ONCE);
            say("a", "b", "c", "d");
            tell();
        }
    }

    private void scaling() throws Exception {
        topics(4);
        start(0, ONCE);
        spread(1);
        start(1, ONCE);
        spread(2);
        start(2, ONCE);
        spread(3);
        say("a b", "b c", "c d", "d a");
        tell();
        stop(apps.get(0));
        spread(2);
        stop(apps.get(0));
        spread(1);
        say("a", "b", "c", "d");
        tell();
    }

    private void restoring() throws Exception {
        topics(2);
        say("a b a", "b c");
        stop(ran(0));
        Utils.delete(state(0));
        App again = start(0, ONCE);
        say("a", "c");
        tell();
        seen.add("restored " + again.restored.get());
    }

    private App ran(int number) throws Exception {
        App app = start(number, ONCE);
        tell();
        return app;
    }

    private void standby() throws Exception {
        topics(2);
        configure("streams.num.standby.replicas", "1");
        say("a b a", "b c");
        Map<String, Object> settings = new HashMap<>(ONCE);
        start(0, settings);
        start(1, settings);
        expect("copies", () -> apps.stream().mapToInt(App::standby).sum() == 2 && apps.stream().mapToInt(App::active).sum() == 4);
        tell();
        seen.add("copies " + apps.stream().map(App::standby).sorted().collect(Collectors.toList()));
        // the last record of a changelog may be the mark of a transaction, which nobody takes in
        expect("caught up", () -> apps.stream().allMatch(app -> app.streams.allLocalStorePartitionLags().values().stream()
            .allMatch(store -> store.values().stream().allMatch(lag -> lag.offsetLag() <= 1))));
        stop(apps.get(0));
        say("a", "c");
        tell();
        seen.add("tasks " + apps.get(0).active() + " " + apps.get(0).standby());
    }

    /** A thread fails amid a transaction, and another one takes its place. */
    private void failing() throws Exception {
        topics(1);
        App app = start(0, words(), ONCE, StreamThreadExceptionResponse.REPLACE_THREAD);
        say("a b a", POISON, "b");
        tell();
        seen.add(app.why());
    }

    private void shutdown() throws Exception {
        topics(4);
        start(0, words(), ONCE, StreamThreadExceptionResponse.SHUTDOWN_APPLICATION);
        start(1, words(), ONCE, StreamThreadExceptionResponse.SHUTDOWN_APPLICATION);
        expect("all there", () -> apps.stream().allMatch(app -> app.active() > 0));
        say(POISON);
        expect("ended", () -> apps.stream().allMatch(app -> app.streams.state() == KafkaStreams.State.ERROR));
        seen.add("all in ERROR; " + apps.stream().map(App::why).sorted().collect(Collectors.joining(", ")));
    }

    private void missing() throws Exception {
        topic("-out", 1);
        App app = start(0, Map.of());
        expect("failed", () -> app.streams.state() == KafkaStreams.State.ERROR);
        seen.add(app.why());
    }

    /** The topic comes before the application has lost its patience. */
    private void late() throws Exception {
        topic("-out", 1);
        App app = start(0, Map.of());
        expect("joined", () -> described().members().size() == 1);
        topic("-in", 2);
        say("a b", "a");
        tell();
        seen.add(app.why());
    }

    private void changed() throws Exception {
        topics(2);
        say("a b", "a");
        stop(ran(0));
        StreamsBuilder builder = new StreamsBuilder();
        counted(builder.<String, String>stream(name + "-in").filter((key, text) -> true).repartition());
        App app = start(1, builder.build(), Map.of(), StreamThreadExceptionResponse.SHUTDOWN_CLIENT);
        expect("failed", () -> app.streams.state() == KafkaStreams.State.ERROR);
        seen.add(app.why());
    }

    /** Two topics that are read together have not the same number of partitions. */
    private void unequal() throws Exception {
        topics(2);
        topic("-other", 3);
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(name + "-in")
            .join(builder.<String, String>table(name + "-other"), (left, right) -> left + right)
            .to(name + "-out");
        App app = start(0, builder.build(), Map.of(), StreamThreadExceptionResponse.SHUTDOWN_CLIENT);
        expect("failed", () -> app.streams.state() == KafkaStreams.State.ERROR);
        seen.add(app.why());
    }

    /** Each instance is told which partitions the others have. */
    private void queries() throws Exception {
        topics(2);
        start(0, Map.of("application.server", "one:1"));
        start(1, Map.of("application.server", "two:2"));
        expect("all known", () -> apps.stream().allMatch(app -> parts(app.streams.metadataForAllStreamsClients()).equals("2 2 2")));
        seen.add("hosts, and partitions of each: " + parts(apps.get(1).streams.metadataForAllStreamsClients()));
        say("a", "b");
        tell();
    }

    private static String parts(Collection<StreamsMetadata> all) {
        return all.size() + " " + all.stream().map(each -> each.topicPartitions().size()).sorted().map(String::valueOf)
            .collect(Collectors.joining(" "));
    }
}
