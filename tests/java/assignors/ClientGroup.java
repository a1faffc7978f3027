import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** A document as a group leader sees it: each subscription goes through Kafka's own serialiser in the member's version. */
final class ClientGroup {
    static Map<String, Map<String, List<Integer>>> assign(JsonNode document, String name) {
        Cluster cluster = cluster(document.path("topics"));
        ConsumerPartitionAssignor assignor = assignor(name);
        if (document.hasNonNull("max_generation"))
            remember(assignor, name, document.get("max_generation").asInt());
        Map<String, Subscription> subscriptions = new HashMap<>();
        document.path("members").fields().forEachRemaining(
            member -> subscriptions.put(member.getKey(), onTheWire(member.getValue(), name)));
        Map<String, Map<String, List<Integer>>> answer = new LinkedHashMap<>();
        assignor.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment().forEach((member, assignment) -> {
            Map<String, List<Integer>> topics = new LinkedHashMap<>();
            assignment.partitions().forEach(
                tp -> topics.computeIfAbsent(tp.topic(), key -> new ArrayList<>()).add(tp.partition()));
            answer.put(member, topics);
        });
        return answer;
    }

    static ConsumerPartitionAssignor assignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            case "cooperative-sticky": return new CooperativeStickyAssignor();
            default: throw new IllegalArgumentException("unknown assignor " + name);
        }
    }

    /** The assignor object has led the group before, in this generation. */
    private static void remember(ConsumerPartitionAssignor assignor, String name, int generation) {
        Subscription former = new Subscription(List.of("t"), userData(name, List.of(), generation), List.of(), generation, Optional.empty());
        Cluster cluster = new Cluster("c", List.of(), List.of(), Set.of(), Set.of());
        assignor.assign(cluster, new GroupSubscription(new HashMap<>(Map.of("former", former))));
    }

    private static Cluster cluster(JsonNode topics) {
        Map<String, Node> nodes = new LinkedHashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.fields().forEachRemaining(topic -> {
            JsonNode spec = topic.getValue();
            int count = spec.isObject() ? spec.get("partitions").asInt() : spec.asInt();
            for (int partition = 0; partition < count; partition++) {
                JsonNode racks = spec.path("racks").path(partition);
                Node[] replicas = new Node[racks.size()];
                for (int i = 0; i < replicas.length; i++) {
                    String rack = racks.get(i).isNull() ? null : racks.get(i).asText();
                    replicas[i] = nodes.computeIfAbsent(i + "/" + rack, key -> new Node(nodes.size(), "host", 9092, rack));
                }
                partitions.add(new PartitionInfo(topic.getKey(), partition, replicas.length == 0 ? null : replicas[0], replicas, replicas));
            }
        });
        return new Cluster("c", nodes.values(), partitions, Set.of(), Set.of());
    }

    private static Subscription onTheWire(JsonNode member, String name) {
        List<String> topics = new ArrayList<>();
        member.path("topics").forEach(topic -> topics.add(topic.asText()));
        List<TopicPartition> owned = partitions(member.path("owned"));
        int generation = member.hasNonNull("generation") ? member.get("generation").asInt() : -1;
        Optional<String> rack = Optional.ofNullable(member.path("rack").textValue()).filter(r -> !r.isEmpty());
        Subscription said = new Subscription(topics, userData(member, name, owned), owned, generation, rack);
        short version = (short) (member.has("version") ? member.get("version").asInt() : 3);
        Subscription read = ConsumerProtocol.deserializeSubscription(ConsumerProtocol.serializeSubscription(said, version));
        read.setGroupInstanceId(Optional.ofNullable(member.path("instance_id").textValue()));
        return read;
    }

    private static List<TopicPartition> partitions(JsonNode byTopic) {
        List<TopicPartition> partitions = new ArrayList<>();
        byTopic.fields().forEachRemaining(topic ->
            topic.getValue().forEach(partition -> partitions.add(new TopicPartition(topic.getKey(), partition.asInt()))));
        return partitions;
    }

    private static ByteBuffer userData(JsonNode member, String name, List<TopicPartition> owned) {
        boolean sticky = name.equals("sticky");
        if (!sticky && !name.equals("cooperative-sticky"))
            return null;
        if (!member.has("user_data")) {
            if (member.hasNonNull("generation"))
                return userData(name, owned, member.get("generation").asInt());
            return sticky && member.hasNonNull("owned") ? withoutGeneration(owned) : null;
        }
        JsonNode given = member.get("user_data");
        if (given.isNull())
            return null;
        if (given.has("base64"))
            return ByteBuffer.wrap(Base64.getDecoder().decode(given.get("base64").asText()));
        if (given.hasNonNull("generation"))
            return userData(name, partitions(given.path("owned")), given.get("generation").asInt());
        return sticky ? withoutGeneration(partitions(given.path("owned"))) : null;
    }

    /** What the assignor of a member says that had this assignment in this generation. */
    static ByteBuffer userData(String name, List<TopicPartition> owned, int generation) {
        ConsumerPartitionAssignor assignor = assignor(name);
        assignor.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("g", generation, "m", Optional.empty()));
        return assignor.subscriptionUserData(Set.of());
    }

    /** The user data of the sticky assignor before it knew generations. */
    private static ByteBuffer withoutGeneration(List<TopicPartition> owned) {
        Map<String, List<Integer>> topics = new LinkedHashMap<>();
        owned.forEach(tp -> topics.computeIfAbsent(tp.topic(), key -> new ArrayList<>()).add(tp.partition()));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream data = new DataOutputStream(bytes)) {
            data.writeInt(topics.size());
            for (Map.Entry<String, List<Integer>> topic : topics.entrySet()) {
                byte[] name = topic.getKey().getBytes(StandardCharsets.UTF_8);
                data.writeShort(name.length);
                data.write(name);
                data.writeInt(topic.getValue().size());
                for (int partition : topic.getValue())
                    data.writeInt(partition);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return ByteBuffer.wrap(bytes.toByteArray());
    }

    private ClientGroup() {
    }
}
