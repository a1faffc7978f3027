import com.sun.management.OperatingSystemMXBean;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * How long Kafka's own assignors take. Arguments: assignor, and "memory" or "bytes", "wall" or "cpu". Input: a line of topics, a line with their
 * number of partitions, then a line per member: id and topics. Output: JSON, per step the first call and the best of those after it.
 */
public final class Measure {
    private static final long BUDGET_NANOS = 5_000_000_000L;
    private static final int MOST_CALLS = 6;

    private final String name;
    private final boolean bytes;
    private final boolean cpu;
    private final Cluster cluster;
    private final List<String> topics;

    private Measure(String name, boolean bytes, boolean cpu, List<String> topics, int partitions) {
        this.name = name;
        this.bytes = bytes;
        this.cpu = cpu;
        this.topics = topics;
        Node node = new Node(0, "host", 9092);
        Node[] replicas = {node};
        List<PartitionInfo> infos = new ArrayList<>();
        for (String topic : topics)
            for (int partition = 0; partition < partitions; partition++)
                infos.add(new PartitionInfo(topic, partition, node, replicas, replicas));
        this.cluster = new Cluster("c", List.of(node), infos, Set.of(), Set.of());
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<String> topics = Arrays.asList(in.readLine().split(","));
        Measure measure = new Measure(args[0], args[1].equals("bytes"), args[2].equals("cpu"), topics, Integer.parseInt(in.readLine()));
        Map<String, List<String>> members = new LinkedHashMap<>();
        for (String line = in.readLine(); line != null; line = in.readLine())
            members.put(line.split(" ")[0], Arrays.asList(line.split(" ")[1].split(",")));
        System.out.println(measure.run(members));
    }

    private String run(Map<String, List<String>> members) {
        Map<String, Assignment> none = Map.of();
        Map<String, Assignment> owned = assign(subscriptions(members, none));
        List<String> ids = new ArrayList<>(members.keySet());
        Map<String, List<String>> left = new LinkedHashMap<>(members);
        left.remove(ids.get(0));
        Map<String, List<String>> joined = new LinkedHashMap<>(members);
        joined.put("consumer-new", topics);
        Map<String, List<String>> fewer = new LinkedHashMap<>(members);
        ids.subList(0, ids.size() / 10).forEach(fewer::remove);
        return "{" + String.join(", ", time("fresh", members, none), time("one left", left, owned),
            time("one joined", joined, owned), time("a tenth left", fewer, owned)) + "}";
    }

    private String time(String step, Map<String, List<String>> members, Map<String, Assignment> owned) {
        long begin = System.nanoTime();
        long first = 0;
        long best = Long.MAX_VALUE;
        for (int call = 0; call < MOST_CALLS && (call < 2 || System.nanoTime() - begin < BUDGET_NANOS); call++) {
            Map<String, Subscription> subscriptions = subscriptions(members, owned);
            Map<String, ByteBuffer> said = new LinkedHashMap<>();
            if (bytes)
                subscriptions.forEach((member, subscription) -> said.put(member, ConsumerProtocol.serializeSubscription(subscription)));
            long start = now();
            if (bytes) {
                Map<String, Subscription> read = new HashMap<>();
                said.forEach((member, data) -> read.put(member, ConsumerProtocol.deserializeSubscription(data)));
                assign(read).values().forEach(ConsumerProtocol::serializeAssignment);
            } else {
                assign(subscriptions);
            }
            long taken = now() - start;
            if (call == 0)
                first = taken;
            else
                best = Math.min(best, taken);
        }
        return String.format("\"%s\": {\"first\": %.4f, \"best\": %.4f}", step, first / 1e9, best / 1e9);
    }

    /** Wall clock, or the processor time of this process, which has the garbage collector's and the compiler's in it. */
    private long now() {
        return cpu ? ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() : System.nanoTime();
    }

    private Map<String, Assignment> assign(Map<String, Subscription> subscriptions) {
        ConsumerPartitionAssignor assignor = ClientGroup.assignor(name);
        return assignor.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
    }

    private Map<String, Subscription> subscriptions(Map<String, List<String>> members, Map<String, Assignment> owned) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        members.forEach((member, wanted) -> {
            Assignment mine = owned.get(member);
            List<TopicPartition> partitions = mine == null ? List.of() : mine.partitions();
            int generation = mine == null ? -1 : 1;
            boolean remembers = mine != null && name.contains("sticky");
            ByteBuffer data = remembers ? ClientGroup.userData(name, partitions, generation) : null;
            boolean says = name.equals("cooperative-sticky");
            subscriptions.put(member, new Subscription(wanted, data, says ? partitions : List.of(), generation, Optional.empty()));
        });
        return subscriptions;
    }
}
