import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A group member on Apache Kafka's own consumer. Talks as tests/interop/members/wire_talk.py says. */
public class Member implements ConsumerRebalanceListener {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Duration CALL = Duration.ofSeconds(5);
    static final Map<String, String> ASSIGNORS = Map.of(
        "range", "RangeAssignor",
        "roundrobin", "RoundRobinAssignor",
        "sticky", "StickyAssignor",
        "cooperative-sticky", "CooperativeStickyAssignor");

    final JsonNode given;
    final ConcurrentLinkedQueue<JsonNode> commands = new ConcurrentLinkedQueue<>();
    final KafkaConsumer<byte[], byte[]> consumer;
    List<TopicPartition> told;

    Member(JsonNode given) {
        this.given = given;
        consumer = new KafkaConsumer<>(properties(given), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static Properties properties(JsonNode given) {
        Properties found = new Properties();
        found.put("bootstrap.servers", given.get("bootstrap").asText());
        found.put("group.id", given.get("group").asText());
        found.put("client.id", given.get("client_id").asText());
        found.put("auto.offset.reset", "earliest");
        found.put("enable.auto.commit", "false");
        found.put("metadata.max.age.ms", "1000");
        if (given.path("protocol").asText("classic").equals("consumer")) {
            found.put("group.protocol", "consumer");
        } else {
            String assignor = ASSIGNORS.get(given.path("assignor").asText("range"));
            found.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor);
            found.put("session.timeout.ms", given.path("session_timeout_ms").asText("30000"));
            found.put("heartbeat.interval.ms", "300");
        }
        if (given.hasNonNull("instance_id")) found.put("group.instance.id", given.get("instance_id").asText());
        return found;
    }

    static synchronized void emit(String event, ObjectNode values) {
        System.out.println(values.put("event", event));
        System.out.flush();
    }

    public static void main(String[] arguments) throws Exception {
        Member member = new Member(JSON.readTree(arguments[0]));
        Thread reader = new Thread(member::listen);
        reader.setDaemon(true);
        reader.start();
        member.run();
    }

    /** The end of stdin is a "leave". */
    void listen() {
        try (Scanner input = new Scanner(System.in, java.nio.charset.StandardCharsets.UTF_8)) {
            while (input.hasNextLine()) commands.add(JSON.readTree(input.nextLine()));
        } catch (java.io.IOException broken) {
            emit("error", JSON.createObjectNode().put("text", broken.toString()));
        }
        commands.add(JSON.createObjectNode().put("do", "leave"));
    }

    void run() {
        consumer.subscribe(List.of(given.get("topic").asText()), this);
        for (JsonNode command = null; command == null || obey(command); command = commands.poll()) {
            try {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(50)))
                    emit("record", JSON.createObjectNode().put("partition", record.partition()).put("offset", record.offset()));
            } catch (RetriableException passing) {
                emit("error", JSON.createObjectNode().put("text", passing.toString()));
            } catch (KafkaException fatal) {
                // As applications do. A leader cannot read what kafka-go's members send: version 1 without owned partitions.
                emit("error", JSON.createObjectNode().put("text", fatal.toString()));
                break;
            }
        }
        consumer.close();
        emit("left", JSON.createObjectNode());
    }

    /** Returns whether there is more to do. */
    boolean obey(JsonNode command) {
        switch (command.get("do").asText()) {
            case "produce" -> produce(command.get("count").asInt(), command.get("partitions").asInt());
            case "commit" -> commit("refused");
            case "leave" -> {
                return false;
            }
            default -> throw new IllegalArgumentException(command.toString());
        }
        return true;
    }

    void commit(String complaint) {
        try {
            consumer.commitSync(CALL);
            emit("committed", JSON.createObjectNode());
        } catch (KafkaException refusal) {
            emit(complaint, JSON.createObjectNode().put("text", refusal.toString()));
        }
    }

    void produce(int count, int partitions) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", given.get("bootstrap").asText());
        try (KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < count; number++)
                producer.send(new ProducerRecord<>(given.get("topic").asText(), number % partitions, null, new byte[] {'x'}));
        }
        emit("produced", JSON.createObjectNode().put("left", 0));
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        tell(consumer.assignment());
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        if (given.path("commit_on_revoke").asBoolean()) commit("error");
        tellWithout(partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        tellWithout(partitions);
    }

    void tellWithout(Collection<TopicPartition> partitions) {
        List<TopicPartition> left = new ArrayList<>(consumer.assignment());
        left.removeAll(partitions);
        if (!left.isEmpty()) tell(left);
    }

    /** Tells of each change of the partitions that the member owns. */
    void tell(Collection<TopicPartition> partitions) {
        List<TopicPartition> now = new ArrayList<>(partitions);
        now.sort(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition));
        if (now.equals(told)) return;
        told = now;
        ObjectNode values = JSON.createObjectNode();
        for (TopicPartition each : now) values.withArray("partitions").addArray().add(each.topic()).add(each.partition());
        if (now.isEmpty()) values.putArray("partitions");
        emit("owned", values);
    }
}
