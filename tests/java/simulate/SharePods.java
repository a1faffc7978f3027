import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** One pod of a share group, who writes for it, and what is left of it: all that a recorded scenario needs, one line an event. */
public final class SharePods {
    private SharePods() {
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> said = new HashMap<>();
        for (String each : arguments) {
            int at = each.indexOf('=');
            said.put(at < 0 ? "do" : each.substring(0, at), at < 0 ? each : each.substring(at + 1));
        }
        switch (said.get("do")) {
            case "make" -> make(said);
            case "write" -> write(said);
            case "pod" -> pod(said);
            default -> left(said);
        }
        System.exit(0);
    }

    private static Admin admin(Map<String, String> said) {
        return Admin.create(Map.of("bootstrap.servers", said.get("bootstrap")));
    }

    private static void make(Map<String, String> said) throws Exception {
        try (Admin admin = admin(said)) {
            admin.createTopics(List.of(new NewTopic(said.get("topic"), Integer.parseInt(said.get("partitions")), (short) 1))).all().get();
            List<AlterConfigOp> changes = new ArrayList<>();
            said.forEach((name, value) -> {
                if (name.startsWith("share.")) {
                    changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET));
                }
            });
            if (!changes.isEmpty()) {
                admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, said.get("group")), changes)).all().get();
            }
        }
    }

    /** Record after record to partition after partition, at a rate; from some times on the next few are bad. */
    private static void write(Map<String, String> said) throws Exception {
        int partitions = Integer.parseInt(said.get("partitions"));
        double rate = Double.parseDouble(said.get("rate"));
        double seconds = Double.parseDouble(said.get("seconds"));
        Map<Double, Integer> bad = new HashMap<>();
        for (String each : said.getOrDefault("bad", "").split(",")) {
            if (!each.isEmpty()) {
                bad.put(Double.parseDouble(each.split(":")[0]), Integer.parseInt(each.split(":")[1]));
            }
        }
        Map<String, Object> settings = Map.of("bootstrap.servers", said.get("bootstrap"), "linger.ms", 0);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.partitionsFor(said.get("topic"));
            long began = System.nanoTime();
            int badNow = 0;
            for (long number = 0; number < rate * seconds; number++) {
                long due = began + (long) (number / rate * 1e9);
                while (System.nanoTime() < due) {
                    Thread.sleep(Math.max((due - System.nanoTime()) / 1_000_000, 1));
                }
                double now = (System.nanoTime() - began) / 1e9;
                for (Double at : List.copyOf(bad.keySet())) {
                    if (at <= now) {
                        badNow += bad.remove(at);
                    }
                }
                String value = badNow > 0 ? "bad" : "good";
                badNow = Math.max(badNow - 1, 0);
                producer.send(new ProducerRecord<>(said.get("topic"), (int) (number % partitions), null, value));
            }
        }
    }

    private static void pod(Map<String, String> said) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", said.get("bootstrap"));
        settings.put("group.id", said.get("group"));
        said.forEach((name, value) -> {
            if (name.startsWith("client.")) {
                settings.put(name.substring("client.".length()), value);
            }
        });
        boolean isExplicit = "explicit".equals(settings.get("share.acknowledgement.mode"));
        long workUs = Long.parseLong(said.get("work"));
        AtomicBoolean ends = new AtomicBoolean();
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ends.set(true);
            try {
                main.join(30_000);
            } catch (InterruptedException ignored) {
                Thread.currentThread().interrupt();
            }
        }));
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.setAcknowledgementCommitCallback((offsets, error) -> offsets.forEach((partition, which) -> which.forEach(
                    offset -> say(error == null ? "told" : "refused", partition.partition(), offset, 0))));
            consumer.subscribe(List.of(said.get("topic")));
            while (!ends.get()) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                for (ConsumerRecord<String, String> record : records) {
                    say("got", record.partition(), record.offset(), record.deliveryCount().orElse((short) 0));
                }
                long due = System.nanoTime();
                for (ConsumerRecord<String, String> record : records) {
                    due += workUs * 1000;
                    while (System.nanoTime() < due) {
                        Thread.sleep(Math.max((due - System.nanoTime()) / 1_000_000, 1));
                    }
                    boolean isBad = "bad".equals(record.value());
                    if (isExplicit) {
                        consumer.acknowledge(record, isBad ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    }
                    say(isBad ? "failed" : "did", record.partition(), record.offset(), record.deliveryCount().orElse((short) 0));
                }
            }
        }
    }

    private static synchronized void say(String what, int partition, long offset, int count) {
        System.out.println(System.currentTimeMillis() + " " + what + " " + partition + " " + offset + " " + count);
        System.out.flush();
    }

    private static void left(Map<String, String> said) throws Exception {
        try (Admin admin = admin(said)) {
            String group = said.get("group");
            admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(group).get()
                    .forEach((partition, info) -> System.out.println(
                            partition.partition() + " " + info.startOffset() + " " + info.lag().orElse(-1L)));
        }
    }
}
