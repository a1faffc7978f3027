package org.apache.kafka.streams.processor.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.UnknownServerException;
import org.apache.kafka.common.internals.KafkaFutureImpl;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.StreamsConfig.InternalConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.AssignorConfiguration;
import org.apache.kafka.streams.processor.internals.assignment.ReferenceContainer;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;
import org.apache.kafka.streams.state.HostInfo;
import org.apache.kafka.streams.state.Stores;

import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;

/** The classic group of a Kafka Streams application: what its leader's assignor answers, and user data in each version. */
public final class ClassicStreams {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private final JsonNode question;
    private final Map<String, Object> settings = new HashMap<>();
    private Boolean isStable = null;

    private ClassicStreams(JsonNode question) {
        this.question = question;
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:9092");
        question.get("settings").fields().forEachRemaining(setting -> settings.put(setting.getKey(), setting.getValue().asText()));
        List<String> tags = new ArrayList<>();
        question.get("client_tags").forEach(tag -> tags.add(tag.asText()));
        tags.forEach(tag -> settings.put(StreamsConfig.clientTagPrefix(tag), "any"));
        settings.put(StreamsConfig.RACK_AWARE_ASSIGNMENT_TAGS_CONFIG, String.join(",", tags));
    }

    /** {"member": [[["topic", 0]], "user data in Base64"]}, or {"thrown": "..."}. */
    public static ObjectNode answer(JsonNode question) {
        ObjectNode answer = MAPPER.createObjectNode();
        ClassicStreams group = new ClassicStreams(question);
        try {
            StreamsPartitionAssignor assignor = group.assignor();
            assignor.assign(group.cluster(), group.subscriptions()).groupAssignment().forEach((member, assignment) -> {
                ArrayNode told = answer.putArray(member);
                ArrayNode partitions = told.addArray();
                assignment.partitions().forEach(each -> partitions.addArray().add(each.topic()).add(each.partition()));
                told.add(base64(assignment.userData()));
            });
            answer.put("stable", group.isStable == null || group.isStable);
        } catch (IllegalStateException error) {
            answer.removeAll();
            answer.put("thrown", error.getMessage());
        }
        return answer;
    }

    /** A subscription's user data as Kafka writes it, and what it reads of that. */
    public static ObjectNode userData(JsonNode question) {
        ObjectNode answer = MAPPER.createObjectNode();
        Map<TaskId, Long> sums = new LinkedHashMap<>();
        question.get("sums").forEach(each -> sums.put(new TaskId(each.get(0).asInt(), each.get(1).asInt()), each.get(2).asLong()));
        Map<String, String> tags = new LinkedHashMap<>();
        question.get("tags").forEach(each -> tags.put(each.get(0).asText(), each.get(1).asText()));
        int version = question.get("version").asInt();
        SubscriptionInfo info = new SubscriptionInfo(version, version < 3 ? -1 : question.get("latest").asInt(),
            new ProcessId(UUID.fromString(question.get("process").asText())), question.get("endpoint").textValue(), sums,
            (byte) question.get("unique").asInt(), question.get("error").asInt(), tags);
        ByteBuffer written = info.encode();
        SubscriptionInfo read = SubscriptionInfo.decode(ByteBuffer.wrap(Base64.getDecoder().decode(base64(written))));
        ArrayNode back = answer.put("bytes", base64(written)).putArray("sums");
        new TreeMap<>(read.taskOffsetSums()).forEach((task, sum) -> back.addArray().add(task.subtopology()).add(task.partition()).add(sum));
        return answer;
    }

    private static String base64(ByteBuffer data) {
        byte[] bytes = new byte[data.remaining()];
        data.duplicate().get(bytes);
        return Base64.getEncoder().encodeToString(bytes);
    }

    private Cluster cluster() {
        List<PartitionInfo> partitions = new ArrayList<>();
        question.get("counts").fields().forEachRemaining(topic -> {
            for (int number = 0; number < topic.getValue().asInt(); number++)
                partitions.add(new PartitionInfo(topic.getKey(), number, null, null, null));
        });
        return new Cluster("c", Set.of(), partitions, Set.of(), Set.of());
    }

    private GroupSubscription subscriptions() {
        Map<String, Subscription> subscriptions = new HashMap<>();
        question.get("members").forEach(member -> {
            List<TopicPartition> owned = new ArrayList<>();
            member.get("owned").forEach(each -> owned.add(new TopicPartition(each.get(0).asText(), each.get(1).asInt())));
            ByteBuffer userData = ByteBuffer.wrap(Base64.getDecoder().decode(member.get("user_data").asText()));
            subscriptions.put(member.get("id").asText(), new Subscription(List.of(), userData, owned, 1, Optional.empty()));
        });
        return new GroupSubscription(subscriptions);
    }

    private StreamsPartitionAssignor assignor() {
        TopologyMetadata topology = new TopologyMetadata(builder(), new StreamsConfig(settings));
        topology.buildAndRewriteTopology();
        ReferenceContainer container = new ReferenceContainer();
        container.adminClient = (Admin) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {Admin.class},
            (proxy, method, arguments) -> ends((Map<?, ?>) arguments[0]));
        ProcessId leader = new ProcessId(UUID.fromString(question.get("leader").asText()));
        Time time = new FixedTime(question.get("now_ms").asLong());
        container.taskManager = new TaskManager(time, null, leader, "", null, null, null, topology, container.adminClient, null, null, null);
        container.mainConsumer = new MockConsumer<>("none");
        container.streamsMetadataState = new StreamsMetadataState(topology, HostInfo.unavailable(), new LogContext());
        container.time = time;
        container.clientTags = Map.of();
        settings.put(InternalConfig.REFERENCE_CONTAINER_PARTITION_ASSIGNOR, container);
        settings.put(InternalConfig.ASSIGNMENT_LISTENER, (AssignorConfiguration.AssignmentListener) stable -> isStable = stable);
        StreamsPartitionAssignor assignor = new StreamsPartitionAssignor();
        assignor.configure(settings);
        assignor.setInternalTopicManager(new InternalTopicManager(time, container.adminClient, new StreamsConfig(settings)) {
            @Override
            public Set<String> makeReady(Map<String, InternalTopicConfig> topics) {
                return Set.of();
            }
        });
        return assignor;
    }

    private InternalTopologyBuilder builder() {
        InternalTopologyBuilder builder = new InternalTopologyBuilder();
        Set<Integer> stateful = new LinkedHashSet<>();
        question.get("stateful").forEach(each -> stateful.add(each.asInt()));
        for (int number = 0; number < question.get("sources").size(); number++) {
            List<String> topics = new ArrayList<>();
            question.get("sources").get(number).forEach(topic -> topics.add(topic.asText()));
            String name = String.format("%03d", number);
            builder.addSource(null, "source" + name, null, null, null, topics.toArray(new String[0]));
            builder.addProcessor("processor" + name, Nothing::new, "source" + name);
            if (stateful.contains(number))
                builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("store" + name), null, null), "processor" + name);
        }
        return builder;
    }

    private ListOffsetsResult ends(Map<?, ?> partitions) {
        Map<TopicPartition, KafkaFuture<ListOffsetsResult.ListOffsetsResultInfo>> futures = new HashMap<>();
        for (Object each : partitions.keySet()) {
            TopicPartition partition = (TopicPartition) each;
            int subtopology = Integer.parseInt(partition.topic().replaceAll("[^0-9]", ""));
            JsonNode end = question.get("ends").path(subtopology + "_" + partition.partition());
            KafkaFutureImpl<ListOffsetsResult.ListOffsetsResultInfo> future = new KafkaFutureImpl<>();
            if (end.isNumber())
                future.complete(new ListOffsetsResult.ListOffsetsResultInfo(end.asLong(), -1, Optional.empty()));
            else
                future.completeExceptionally(new UnknownServerException("no end"));
            futures.put(partition, future);
        }
        return new ListOffsetsResult(futures);
    }

    private static final class Nothing implements Processor<Object, Object, Object, Object> {
        @Override
        public void process(Record<Object, Object> record) {
        }
    }

    private record FixedTime(long milliseconds) implements Time {
        @Override
        public long nanoseconds() {
            return milliseconds * 1_000_000;
        }

        @Override
        public long hiResClockMs() {
            return milliseconds;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, java.util.function.Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }
}
