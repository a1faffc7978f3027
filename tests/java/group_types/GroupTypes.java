import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Members of share and of streams groups, in one process. Commands on stdin, each answered by a line "done" when it is:
 *
 * share NAME GROUP TOPIC: a KafkaShareConsumer that accepts whatever it gets; streams NAME GROUP INPUT OUTPUT FOLDER: a word
 * count with group.protocol=streams; stop NAME: leaves its group.
 */
public class GroupTypes {
    private final String bootstrap;
    private final Map<String, AutoCloseable> members = new LinkedHashMap<>();

    private GroupTypes(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        GroupTypes all = new GroupTypes(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            all.obey(line.split(" "));
            System.out.println("done");
        }
        Runtime.getRuntime().halt(0);
    }

    private void obey(String[] words) throws Exception {
        switch (words[0]) {
            case "share" -> members.put(words[1], share(words[1], words[2], words[3]));
            case "streams" -> members.put(words[1], streams(words[1], words[2], words[3], words[4], words[5]));
            case "stop" -> members.remove(words[1]).close();
            default -> throw new IllegalArgumentException(Arrays.toString(words));
        }
    }

    private Properties common() {
        Properties found = new Properties();
        found.put("bootstrap.servers", bootstrap);
        found.put("metadata.max.age.ms", "1000");
        return found;
    }

    private AutoCloseable share(String name, String group, String topic) {
        Properties given = common();
        given.put("group.id", group);
        given.put("client.id", name);
        KafkaShareConsumer<byte[], byte[]> consumer =
            new KafkaShareConsumer<>(given, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(topic));
        boolean[] isOver = {false};
        Thread thread = new Thread(() -> {
            while (!isOver[0]) {
                consumer.poll(Duration.ofMillis(100));
            }
            consumer.close();
        });
        thread.start();
        return () -> {
            isOver[0] = true;
            thread.join();
        };
    }

    private AutoCloseable streams(String name, String group, String input, String output, String folder) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(input)
            .flatMapValues(text -> Arrays.asList(text.toLowerCase(Locale.ROOT).split(" ")))
            .groupBy((key, word) -> word, Grouped.as("words"))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts"))
            .toStream()
            .mapValues(count -> count.toString())
            .to(output, Produced.with(Serdes.String(), Serdes.String()));
        Properties given = common();
        given.put("application.id", group);
        given.put("client.id", name);
        given.put("group.protocol", "streams");
        given.put("state.dir", folder);
        given.put("commit.interval.ms", "200");
        given.put("num.stream.threads", "1");
        given.put("default.key.serde", Serdes.StringSerde.class.getName());
        given.put("default.value.serde", Serdes.StringSerde.class.getName());
        given.put("auto.offset.reset", "earliest");
        given.put("statestore.cache.max.bytes", "0");
        KafkaStreams streams = new KafkaStreams(builder.build(), given);
        streams.start();
        return () -> streams.close(Duration.ofSeconds(30));
    }
}
