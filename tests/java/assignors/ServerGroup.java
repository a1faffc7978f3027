import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.TopicIds;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;

/** A document as the group coordinator sees it. */
final class ServerGroup implements TopicIds.TopicResolver, SubscribedTopicDescriber {
    private final Map<String, Uuid> ids = new HashMap<>();
    private final Map<Uuid, String> names = new HashMap<>();
    private final Map<Uuid, Integer> counts = new HashMap<>();

    static Map<String, Map<String, List<Integer>>> assign(JsonNode document, String name) {
        ServerGroup group = new ServerGroup();
        document.path("topics").fields().forEachRemaining(topic -> group.add(topic.getKey(), topic.getValue()));
        boolean isSimple = name.equals("simple");
        PartitionAssignor assignor = isSimple ? new SimpleAssignor() : name.equals("uniform") ? new UniformAssignor() : new RangeAssignor();
        Map<String, Map<String, List<Integer>>> answer = new LinkedHashMap<>();
        document.path("members").fieldNames().forEachRemaining(member -> answer.put(member, new LinkedHashMap<>()));
        if (answer.isEmpty())
            return answer;
        assignor.assign(group.spec(document.path("members"), document.get("assignable")), group).members().forEach((member, assignment) ->
            assignment.partitions().forEach((id, partitions) ->
                // Of the simple one the order is looked at as well.
                answer.get(member).put(group.nameOf(id), new ArrayList<>(isSimple ? partitions : new TreeSet<>(partitions)))));
        return answer;
    }

    private void add(String name, JsonNode spec) {
        int count = spec.isObject() ? spec.get("partitions").asInt() : spec.asInt();
        Uuid id = spec.hasNonNull("id") ? Uuid.fromString(spec.get("id").asText()) : idOf(name);
        names.put(id, name);
        if (count > 0) {
            ids.put(name, id);
            counts.put(id, count);
        } else {
            ids.remove(name);
        }
    }

    private static Uuid idOf(String name) {
        UUID id = UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.UTF_8));
        return new Uuid(id.getMostSignificantBits(), id.getLeastSignificantBits());
    }

    private String nameOf(Uuid id) {
        return names.get(id);
    }

    private GroupSpecImpl spec(JsonNode members, JsonNode assignable) {
        Map<String, MemberSubscriptionAndAssignmentImpl> specs = new HashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        Set<Set<String>> subscriptions = new HashSet<>();
        members.fields().forEachRemaining(entry -> {
            JsonNode member = entry.getValue();
            List<String> listed = new ArrayList<>();
            member.path("topics").forEach(topic -> listed.add(topic.asText()));
            Set<String> subscribed = new HashSet<>(listed);
            subscriptions.add(subscribed);
            Map<Uuid, Set<Integer>> target = new HashMap<>();
            member.path("owned").fields().forEachRemaining(topic -> {
                List<Integer> partitions = new ArrayList<>();
                topic.getValue().forEach(partition -> partitions.add(partition.asInt()));
                Uuid id = ids.getOrDefault(topic.getKey(), idOf(topic.getKey()));
                if (partitions.isEmpty())
                    return;
                target.put(id, new HashSet<>(partitions));
                partitions.forEach(p -> inverted.computeIfAbsent(id, key -> new HashMap<>()).put(p, entry.getKey()));
            });
            specs.put(entry.getKey(), new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.ofNullable(member.path("instance_id").textValue()),
                new TopicIds(subscribed, this), new Assignment(target)));
        });
        SubscriptionType type = subscriptions.size() == 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        return assignable == null ? new GroupSpecImpl(specs, type, inverted)
            : new GroupSpecImpl(specs, type, inverted, Optional.of(allowed(assignable)));
    }

    private Map<Uuid, Set<Integer>> allowed(JsonNode assignable) {
        Map<Uuid, Set<Integer>> allowed = new HashMap<>();
        assignable.fields().forEachRemaining(topic -> {
            Set<Integer> numbers = allowed.computeIfAbsent(ids.getOrDefault(topic.getKey(), idOf(topic.getKey())), id -> new HashSet<>());
            topic.getValue().forEach(number -> numbers.add(number.asInt()));
        });
        return allowed;
    }

    @Override
    public CoordinatorMetadataImage image() {
        return CoordinatorMetadataImage.EMPTY;
    }

    @Override
    public String name(Uuid id) {
        return counts.containsKey(id) ? names.get(id) : null;
    }

    @Override
    public Uuid id(String name) {
        return ids.get(name);
    }

    @Override
    public void clear() {
    }

    @Override
    public int numPartitions(Uuid id) {
        return counts.getOrDefault(id, -1);
    }

    @Override
    public Set<String> racksForPartition(Uuid id, int partition) {
        return Set.of();
    }
}
