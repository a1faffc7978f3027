import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Plays with Java's KafkaShareConsumer: each scenario in a group and a topic of its own, and one line of what it saw. */
public final class ShareConsumers {
    private static final Duration A_MOMENT = Duration.ofMillis(300);
    private static final long PATIENCE_MS = 30_000;

    private final String bootstrap;
    private final Admin admin;
    private String name;
    private final List<String> seen = new ArrayList<>();

    private interface Scenario {
        void run() throws Exception;
    }

    private ShareConsumers(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] arguments) throws Exception {
        ShareConsumers it = new ShareConsumers(arguments[0]);
        Map<String, Scenario> scenarios = new LinkedHashMap<>();
        scenarios.put("implicit", it::implicit);
        scenarios.put("explicit", it::explicit);
        scenarios.put("release", it::release);
        scenarios.put("reject", it::reject);
        scenarios.put("renew", it::renew);
        scenarios.put("lock", it::lock);
        scenarios.put("limit", it::limit);
        scenarios.put("two", it::two);
        scenarios.put("committed", it::committed);
        scenarios.put("close", it::close);
        scenarios.put("sync", it::sync);
        scenarios.put("async", it::async);
        scenarios.put("latest", it::latest);
        scenarios.put("records", it::records);
        for (Map.Entry<String, Scenario> each : scenarios.entrySet()) {
            if (arguments.length > 1 && !List.of(arguments).contains(each.getKey())) {
                continue;
            }
            it.name = each.getKey() + "-" + UUID.randomUUID();
            it.seen.clear();
            try {
                each.getValue().run();
            } catch (Exception error) {
                it.seen.add("failed " + error);
            }
            System.out.println(each.getKey() + ": " + String.join("; ", it.seen));
        }
        it.admin.close(Duration.ZERO);
        System.exit(0);
    }

    private void topic(int partitions, Map<String, String> group) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
        List<AlterConfigOp> changes = new ArrayList<>();
        group.forEach((key, value) -> changes.add(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, name), changes)).all().get();
    }

    private void topic(Map<String, String> group) throws Exception {
        topic(1, group);
    }

    private static Map<String, String> earliest() {
        return Map.of("share.auto.offset.reset", "earliest");
    }

    private KafkaProducer<String, String> producer(Map<String, Object> settings) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.putAll(settings);
        return new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
    }

    private void produce(int from, int to) throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            for (int number = from; number < to; number++) {
                producer.send(new ProducerRecord<>(name, 0, null, "v" + number)).get();
            }
        }
    }

    private KafkaShareConsumer<String, String> consumer(String mode, Map<String, Object> settings) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", name);
        properties.put("share.acknowledgement.mode", mode);
        properties.putAll(settings);
        KafkaShareConsumer<String, String> consumer =
            new KafkaShareConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(name));
        return consumer;
    }

    private KafkaShareConsumer<String, String> consumer(String mode) {
        return consumer(mode, Map.of());
    }

    /** Polls until something comes. */
    private List<ConsumerRecord<String, String>> poll(KafkaShareConsumer<String, String> consumer, long patienceMs) {
        long end = System.currentTimeMillis() + patienceMs;
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        while (found.isEmpty() && System.currentTimeMillis() < end) {
            ConsumerRecords<String, String> records = consumer.poll(A_MOMENT);
            records.forEach(found::add);
        }
        return found;
    }

    private List<ConsumerRecord<String, String>> poll(KafkaShareConsumer<String, String> consumer) {
        return poll(consumer, PATIENCE_MS);
    }

    /** Polls until so many have come, and says each as value x deliveries. */
    private void all(KafkaShareConsumer<String, String> consumer, int count, AcknowledgeType type) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        while (found.size() < count) {
            List<ConsumerRecord<String, String>> more = poll(consumer);
            if (more.isEmpty()) {
                break;
            }
            if (type != null) {
                more.forEach(record -> consumer.acknowledge(record, type));
            }
            found.addAll(more);
        }
        say(found);
    }

    private void say(List<ConsumerRecord<String, String>> records) {
        StringBuilder line = new StringBuilder("got");
        for (ConsumerRecord<String, String> record : records) {
            line.append(' ').append(record.value()).append('x').append(record.deliveryCount().orElse((short) -1));
        }
        seen.add(line.toString());
    }

    private void nothing(KafkaShareConsumer<String, String> consumer) {
        nothing(consumer, 1_500);
    }

    private void nothing(KafkaShareConsumer<String, String> consumer, long forMs) {
        List<ConsumerRecord<String, String>> more = poll(consumer, forMs);
        if (more.isEmpty()) {
            seen.add("nothing more");
        } else {
            say(more);
        }
    }

    private void implicit() throws Exception {
        topic(earliest());
        produce(0, 3);
        try (KafkaShareConsumer<String, String> consumer = consumer("implicit")) {
            all(consumer, 3, null);
            nothing(consumer);
            produce(3, 5);
            all(consumer, 2, null);
            consumer.commitSync();
        }
        try (KafkaShareConsumer<String, String> consumer = consumer("implicit")) {
            nothing(consumer);
        }
    }

    private void explicit() throws Exception {
        topic(earliest());
        produce(0, 4);
        try (KafkaShareConsumer<String, String> consumer = consumer("explicit")) {
            all(consumer, 4, AcknowledgeType.ACCEPT);
            nothing(consumer);
        }
        try (KafkaShareConsumer<String, String> consumer = consumer("explicit")) {
            nothing(consumer);
        }
    }

    private void release() throws Exception {
        topic(earliest());
        produce(0, 3);
        try (KafkaShareConsumer<String, String> consumer = consumer("explicit")) {
            all(consumer, 3, AcknowledgeType.RELEASE);
            all(consumer, 3, AcknowledgeType.ACCEPT);
            nothing(consumer);
        }
    }

    private void reject() throws Exception {
        topic(earliest());
        produce(0, 2);
        try (KafkaShareConsumer<String, String> consumer = consumer("explicit")) {
            all(consumer, 2, AcknowledgeType.REJECT);
            nothing(consumer);
        }
    }

    private void renew() throws Exception {
        topic(earliest());
        produce(0, 2);
        try (KafkaShareConsumer<String, String> consumer = consumer("explicit")) {
            List<ConsumerRecord<String, String>> found = poll(consumer);
            say(found);
            seen.add("lock " + consumer.acquisitionLockTimeoutMs().map(String::valueOf).orElse("none"));
            for (int times = 0; times < 3; times++) {
                for (ConsumerRecord<String, String> record : found) {
                    consumer.acknowledge(record, AcknowledgeType.RENEW);
                }
                seen.add("renewed " + errors(consumer.commitSync()));
                Thread.sleep(1_200);
                found = poll(consumer);
                say(found);
            }
            for (ConsumerRecord<String, String> record : found) {
                consumer.acknowledge(record, AcknowledgeType.ACCEPT);
            }
            seen.add("accepted " + errors(consumer.commitSync()));
            nothing(consumer);
        }
    }

    /** One polls and does nothing more: when its locks have ended, another one gets its records. */
    private void lock() throws Exception {
        topic(earliest());
        produce(0, 2);
        try (KafkaShareConsumer<String, String> dead = consumer("explicit")) {
            say(poll(dead));
            try (KafkaShareConsumer<String, String> other = consumer("explicit")) {
                long began = System.currentTimeMillis();
                all(other, 2, AcknowledgeType.ACCEPT);
                seen.add(System.currentTimeMillis() - began > 500 ? "after a while" : "at once");
            }
        }
    }

    private void limit() throws Exception {
        topic(Map.of("share.auto.offset.reset", "earliest", "share.delivery.count.limit", "3"));
        produce(0, 1);
        try (KafkaShareConsumer<String, String> consumer = consumer("explicit")) {
            for (int times = 0; times < 3; times++) {
                all(consumer, 1, AcknowledgeType.RELEASE);
            }
            nothing(consumer);
        }
    }

    private void two() throws Exception {
        topic(earliest());
        produce(0, 100);
        Map<String, Object> few = Map.of("max.poll.records", "10");
        Map<String, Integer> times = new TreeMap<>();
        try (KafkaShareConsumer<String, String> first = consumer("explicit", few);
                KafkaShareConsumer<String, String> second = consumer("explicit", few)) {
            int[] counts = new int[2];
            long end = System.currentTimeMillis() + PATIENCE_MS;
            while (times.size() < 100 && System.currentTimeMillis() < end) {
                int number = 0;
                for (KafkaShareConsumer<String, String> consumer : List.of(first, second)) {
                    for (ConsumerRecord<String, String> record : consumer.poll(A_MOMENT)) {
                        consumer.acknowledge(record);
                        times.merge(record.value(), 1, Integer::sum);
                        counts[number]++;
                    }
                    number++;
                }
            }
            seen.add(times.size() + " records");
            seen.add(times.values().stream().allMatch(count -> count == 1) ? "each once" : "some twice " + times);
        }
    }

    private void committed() throws Exception {
        topic(Map.of("share.auto.offset.reset", "earliest", "share.isolation.level", "read_committed"));
        try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", name))) {
            producer.initTransactions();
            for (int number = 0; number < 4; number++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(name, 0, null, "v" + number)).get();
                if (number % 2 == 0) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        try (KafkaShareConsumer<String, String> consumer = consumer("explicit")) {
            all(consumer, 2, AcknowledgeType.ACCEPT);
            nothing(consumer);
        }
    }

    /** What somebody has and does not acknowledge is there for others as soon as he closes. */
    private void close() throws Exception {
        topic(earliest());
        produce(0, 3);
        KafkaShareConsumer<String, String> first = consumer("explicit");
        List<ConsumerRecord<String, String>> found = poll(first);
        first.acknowledge(found.get(0));
        say(found);
        first.close();
        try (KafkaShareConsumer<String, String> second = consumer("explicit")) {
            all(second, 2, AcknowledgeType.ACCEPT);
        }
    }

    private void sync() throws Exception {
        topic(earliest());
        produce(0, 3);
        try (KafkaShareConsumer<String, String> consumer = consumer("explicit")) {
            List<ConsumerRecord<String, String>> found = poll(consumer);
            consumer.acknowledge(found.get(0));
            seen.add("committed " + errors(consumer.commitSync()));
            found.subList(1, found.size()).forEach(consumer::acknowledge);
            seen.add("committed " + errors(consumer.commitSync(Duration.ofSeconds(10))));
            seen.add("committed " + errors(consumer.commitSync()));
        }
        try (KafkaShareConsumer<String, String> late = consumer("explicit")) {
            produce(3, 4);
            List<ConsumerRecord<String, String>> found = poll(late);
            say(found);
            Thread.sleep(2_500);
            found.forEach(late::acknowledge);
            seen.add("too late " + errors(late.commitSync()));
        }
    }

    private static String errors(Map<TopicIdPartition, Optional<KafkaException>> results) {
        List<String> lines = new ArrayList<>();
        results.forEach((partition, error) -> lines.add(
            partition.partition() + "=" + error.map(each -> each.getClass().getSimpleName() + ": " + each.getMessage()).orElse("ok")));
        return lines.toString();
    }

    private void async() throws Exception {
        topic(earliest());
        produce(0, 2);
        ConcurrentLinkedQueue<String> said = new ConcurrentLinkedQueue<>();
        try (KafkaShareConsumer<String, String> consumer = consumer("explicit")) {
            consumer.setAcknowledgementCommitCallback((offsets, error) -> offsets.forEach(
                (partition, each) -> said.add(partition.partition() + ":" + new java.util.TreeSet<>(each) + "=" + error)));
            List<ConsumerRecord<String, String>> found = poll(consumer);
            found.forEach(consumer::acknowledge);
            consumer.commitAsync();
            long end = System.currentTimeMillis() + PATIENCE_MS;
            while (said.isEmpty() && System.currentTimeMillis() < end) {
                consumer.poll(A_MOMENT);
            }
            seen.add("told " + said);
        }
    }

    private void latest() throws Exception {
        topic(Map.of("share.auto.offset.reset", "latest"));
        produce(0, 2);
        try (KafkaShareConsumer<String, String> consumer = consumer("implicit")) {
            nothing(consumer, 8_000);
            produce(2, 4);
            all(consumer, 2, null);
        }
    }

    /** A limit that holds to the record (KIP-1206), and one that takes whole batches. */
    private void records() throws Exception {
        for (String mode : List.of("record_limit", "batch_optimized")) {
            name = mode + "-" + UUID.randomUUID();
            topic(earliest());
            try (KafkaProducer<String, String> producer = producer(Map.of("linger.ms", "1000"))) {
                for (int number = 0; number < 10; number++) {
                    producer.send(new ProducerRecord<>(name, 0, null, "v" + number));
                }
            }
            Map<String, Object> settings = Map.of("max.poll.records", "4", "share.acquire.mode", mode);
            try (KafkaShareConsumer<String, String> consumer = consumer("explicit", settings)) {
                List<ConsumerRecord<String, String>> found = poll(consumer);
                say(found);
                found.forEach(consumer::acknowledge);
                consumer.commitSync();
            }
        }
    }
}
