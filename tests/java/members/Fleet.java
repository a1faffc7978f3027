import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Scanner;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Real consumers on command: each in a thread of its own that polls, "processes" for a random time, and polls again.
 *
 * stdin:  start NAME TOPICS key=value ...   poll.gap.ms and poll.gap.min.ms (the longest and the shortest pause after a poll
 *                                           that returned records), poll.timeout.ms, commit.sync, and consumer settings;
 *                                           TOPICS is a,b or ^regex
 *         close NAME | leave NAME | stall NAME MS | produce TOPIC PARTITIONS RATE_A_SECOND | quit
 * stdout: MICROSECONDS NAME WHAT ...        the clock is the machine's, so that lines of several processes can be merged
 */
public class Fleet {
    static final Map<String, Member> members = new ConcurrentHashMap<>();
    static String bootstrap;

    static synchronized void say(String name, String what) {
        java.time.Instant now = java.time.Instant.now();
        System.out.println((now.getEpochSecond() * 1_000_000 + now.getNano() / 1000) + " " + name + " " + what);
    }

    static String names(Collection<TopicPartition> partitions) {
        List<String> names = new ArrayList<>();
        for (TopicPartition partition : partitions) names.add(partition.toString());
        names.sort(null);
        return String.join(",", names);
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        warmUp();
        say("fleet", "ready");
        Scanner input = new Scanner(System.in);
        while (input.hasNextLine()) {
            String[] words = input.nextLine().trim().split(" +");
            switch (words[0]) {
                case "start" -> new Member(words).start();
                case "close" -> members.get(words[1]).stop(CloseOptions.GroupMembershipOperation.DEFAULT);
                case "leave" -> members.get(words[1]).stop(CloseOptions.GroupMembershipOperation.LEAVE_GROUP);
                case "stall" -> members.get(words[1]).stallMs = Long.parseLong(words[2]);
                case "produce" -> produce(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]));
                case "quit" -> Runtime.getRuntime().halt(0);
                default -> throw new IllegalArgumentException(words[0]);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    /** Classes are loaded before it counts. */
    static void warmUp() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        for (String protocol : List.of("classic", "consumer")) {
            properties.put("group.protocol", protocol);
            properties.put("group.id", "warm-up-" + protocol + "-" + ProcessHandle.current().pid());
            try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of("__warm-up-" + protocol));
                for (int round = 0; round < 5; round++) consumer.poll(Duration.ofMillis(20));
            }
        }
    }

    /** So many records a second, evenly spread over the partitions. */
    static void produce(String topic, int partitions, int rate) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("linger.ms", "20");
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        Thread thread = new Thread(() -> {
            long begin = System.nanoTime();
            for (long sent = 0; ; sent++) {
                long due = begin + sent * 1_000_000_000L / rate;
                while (System.nanoTime() < due) {
                    try {
                        Thread.sleep(1);
                    } catch (InterruptedException interrupted) {
                        return;
                    }
                }
                producer.send(new ProducerRecord<>(topic, (int) (sent % partitions), null, new byte[8]));
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    static class Member extends Thread implements ConsumerRebalanceListener {
        final String name;
        final String topics;
        final Properties properties = new Properties();
        final Random random = new Random();
        long gapMs = 100;
        long gapMinMs = 0;
        long timeoutMs = 100;
        boolean commitsSync;
        volatile long stallMs;
        volatile CloseOptions.GroupMembershipOperation closing;
        KafkaConsumer<byte[], byte[]> consumer;

        Member(String[] words) {
            name = words[1];
            topics = words[2];
            properties.put("bootstrap.servers", bootstrap);
            properties.put("client.id", name);
            for (int index = 3; index < words.length; index++) {
                String[] pair = words[index].split("=", 2);
                switch (pair[0]) {
                    case "poll.gap.ms" -> gapMs = Long.parseLong(pair[1]);
                    case "poll.gap.min.ms" -> gapMinMs = Long.parseLong(pair[1]);
                    case "poll.timeout.ms" -> timeoutMs = Long.parseLong(pair[1]);
                    case "commit.sync" -> commitsSync = Boolean.parseBoolean(pair[1]);
                    default -> properties.put(pair[0], pair[1]);
                }
            }
            members.put(name, this);
        }

        void stop(CloseOptions.GroupMembershipOperation operation) {
            closing = operation;
        }

        @Override
        public void run() {
            try {
                consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                if (topics.startsWith("^")) consumer.subscribe(Pattern.compile(topics), this);
                else consumer.subscribe(List.of(topics.split(",")), this);
                say(name, "subscribed");
                while (closing == null) turn();
                say(name, "closing");
                consumer.close(CloseOptions.groupMembershipOperation(closing).withTimeout(Duration.ofSeconds(30)));
                say(name, "closed");
            } catch (Throwable problem) {
                say(name, "failed " + problem.getClass().getSimpleName());
            }
        }

        void turn() throws InterruptedException {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(timeoutMs));
            Map<TopicPartition, long[]> ranges = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                TopicPartition partition = new TopicPartition(record.topic(), record.partition());
                ranges.computeIfAbsent(partition, any -> new long[] {record.offset(), 0})[1] = record.offset();
            }
            StringBuilder line = new StringBuilder();
            ranges.forEach((partition, range) -> line.append(' ').append(partition).append(':').append(range[0]).append('-').append(range[1]));
            if (!ranges.isEmpty()) say(name, "read" + line);
            if (stallMs > 0) {
                long length = stallMs;
                stallMs = 0;
                say(name, "stalls");
                Thread.sleep(length);
            } else if (gapMs > 0 && !ranges.isEmpty()) {
                Thread.sleep(random.nextLong(gapMinMs, gapMs + 1));
            }
            if (commitsSync && !ranges.isEmpty()) {
                try {
                    consumer.commitSync();
                } catch (Exception problem) {
                    say(name, "commit-failed " + problem.getClass().getSimpleName());
                }
            }
        }

        String generation() {
            return " " + consumer.groupMetadata().generationId();
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            say(name, "assigned" + generation() + " " + names(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            say(name, "revoked" + generation() + " " + names(partitions));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            say(name, "lost" + generation() + " " + names(partitions));
        }
    }
}
