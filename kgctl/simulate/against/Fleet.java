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
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Real consumers on command: each in a thread of its own that polls, processes for a while, and polls again.
 * The words of a line are separated by tabs; commands, settings and what is said are those of client.py, beside this file.
 * Of the connection, config.file names a properties file.
 */
public class Fleet {
    static final Map<String, Member> members = new ConcurrentHashMap<>();
    static final Properties connection = new Properties();

    static synchronized void say(String name, String what) {
        java.time.Instant now = java.time.Instant.now();
        System.out.println((now.getEpochSecond() * 1_000_000 + now.getNano() / 1000) + "\t" + name + "\t" + what);
    }

    static String names(Collection<TopicPartition> partitions) {
        List<String> names = new ArrayList<>();
        for (TopicPartition partition : partitions) names.add(partition.toString());
        names.sort(null);
        return String.join(",", names);
    }

    public static void main(String[] arguments) throws Exception {
        Scanner input = new Scanner(System.in, java.nio.charset.StandardCharsets.UTF_8);
        connect(input.nextLine().split("\t"));
        warmUp();
        say("client", "ready");
        while (input.hasNextLine()) {
            String[] words = input.nextLine().split("\t");
            switch (words[0]) {
                case "start" -> new Member(words).start();
                case "close" -> members.get(words[1]).closing = true;
                case "stall" -> members.get(words[1]).stalledUntil = System.nanoTime() + Long.parseLong(words[2]) * 1_000_000;
                case "slow" -> members.get(words[1]).factor = Double.parseDouble(words[2]);
                default -> throw new IllegalArgumentException(words[0]);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    static void connect(String[] words) throws Exception {
        for (int index = 1; index < words.length; index++) {
            String[] pair = words[index].split("=", 2);
            if (!pair[0].equals("config.file")) {
                connection.put(pair[0], pair[1]);
                continue;
            }
            try (java.io.Reader reader = java.nio.file.Files.newBufferedReader(java.nio.file.Path.of(pair[1]))) {
                Properties file = new Properties();
                file.load(reader);
                file.forEach(connection::putIfAbsent);
            }
        }
    }

    /** Classes are loaded before it counts. */
    static void warmUp() {
        Properties properties = new Properties();
        properties.putAll(connection);
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

    static class Member extends Thread implements ConsumerRebalanceListener {
        final String name;
        final String topics;
        final Properties properties = new Properties();
        final Map<String, String> loop = new HashMap<>();
        final Random random = new Random();
        volatile long stalledUntil = System.nanoTime();
        volatile double factor = 1;
        volatile boolean closing;
        long committed = System.nanoTime();
        String seen = "";
        KafkaConsumer<byte[], byte[]> consumer;

        Member(String[] words) {
            name = words[1];
            topics = words[2];
            properties.putAll(connection);
            for (int index = 3; index < words.length; index++) {
                String[] pair = words[index].split("=", 2);
                if (pair[0].matches("poll\\..*|callback\\..*|commit\\..*|records\\.per\\.second")) loop.put(pair[0], pair[1]);
                else properties.put(pair[0], pair[1]);
            }
            if (!mode().equals("auto")) properties.put("enable.auto.commit", "false");
            members.put(name, this);
        }

        String mode() {
            return loop.getOrDefault("commit.mode", "auto");
        }

        /** One of a list's values, in milliseconds. */
        double draw(String key) {
            if (!loop.containsKey(key)) return 0;
            String[] values = loop.get(key).split(",");
            return Double.parseDouble(values[random.nextInt(values.length)]);
        }

        static void rest(double milliseconds) {
            try {
                Thread.sleep((long) milliseconds, (int) ((milliseconds % 1) * 999_999));
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }

        @Override
        public void run() {
            try {
                consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                if (topics.startsWith("@")) consumer.subscribe(new SubscriptionPattern(topics.substring(1)), this);
                else if (topics.startsWith("^")) consumer.subscribe(Pattern.compile(topics), this);
                else consumer.subscribe(List.of(topics.split(",")), this);
                say(name, "subscribed");
                while (!closing) turn();
                say(name, "closing");
                consumer.close(CloseOptions.timeout(Duration.ofSeconds(30)));
                say(name, "closed");
            } catch (Throwable problem) {
                say(name, "failed\t" + code(problem));
            }
        }

        /** FencedInstanceIdException is FENCED_INSTANCE_ID. */
        static String code(Throwable problem) {
            String plain = problem.getClass().getSimpleName().replaceAll("Exception$", "");
            return plain.replaceAll("(?<=[a-z])(?=[A-Z])", "_").toUpperCase();
        }

        void turn() {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis((long) Double.parseDouble(loop.getOrDefault("poll.timeout.ms", "100"))));
            tellGeneration();
            Map<TopicPartition, long[]> ranges = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                TopicPartition partition = new TopicPartition(record.topic(), record.partition());
                long wait = Math.max(System.currentTimeMillis() - record.timestamp(), 0);
                long[] range = ranges.computeIfAbsent(partition, any -> new long[] {record.offset(), 0, wait, wait});
                range[1] = record.offset();
                range[2] = Math.min(range[2], wait);
                range[3] = Math.max(range[3], wait);
            }
            StringBuilder line = new StringBuilder();
            ranges.forEach((partition, range) -> line.append("\t%s:%d-%d:%d-%d".formatted(partition, range[0], range[1], range[2], range[3])));
            if (!ranges.isEmpty()) say(name, "read" + line);
            if (!ranges.isEmpty() && mode().equals("before-batch")) commit();
            if (!stalls() && (!ranges.isEmpty() || loop.containsKey("poll.pauses.always"))) {
                double rate = Double.parseDouble(loop.getOrDefault("records.per.second", "0"));
                rest((draw("poll.pauses.ms") + (rate > 0 ? records.count() * 1000 / rate : 0)) * factor);
                stalls();
            }
            if (!ranges.isEmpty() && isCommitDue()) commit();
        }

        /** Whether it was stuck just now, in the batch that a stall has met it in. */
        boolean stalls() {
            double left = (stalledUntil - System.nanoTime()) / 1e6;
            if (left <= 0) return false;
            say(name, "stalls");
            rest(left);
            return true;
        }

        boolean isCommitDue() {
            long every = (long) (Double.parseDouble(loop.getOrDefault("commit.every.ms", "5000")) * 1_000_000);
            return mode().equals("after-batch") || mode().equals("every") && System.nanoTime() - committed >= every;
        }

        void commit() {
            committed = System.nanoTime();
            try {
                consumer.commitSync();
            } catch (RuntimeException problem) {
                say(name, "commit-failed\t" + code(problem));
            }
        }

        void tellGeneration() {
            String now = consumer.groupMetadata().generationId() + "\t" + consumer.groupMetadata().memberId();
            if (now.equals(seen)) return;
            seen = now;
            say(name, "generation\t" + now);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            tellGeneration();
            rest(draw("callback.assigned.ms"));
            say(name, "assigned\t" + names(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            say(name, "revoked\t" + names(partitions));
            rest(draw("callback.revoked.ms"));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            say(name, "lost\t" + names(partitions));
            rest(draw("callback.lost.ms"));
        }
    }
}
