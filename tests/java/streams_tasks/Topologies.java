package org.apache.kafka.coordinator.group.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.CopartitionGroup;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.KeyValue;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Subtopology;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.TopicInfo;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Topology;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData.EndpointToPartitions;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData.TopicPartition;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.generated.StreamsGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;
import org.apache.kafka.coordinator.group.streams.topics.EndpointToPartitionsManager;
import org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager;
import org.apache.kafka.timeline.SnapshotRegistry;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** A declared topology, the topics of a cluster, and what Kafka makes of them, in the order of its maps and sets. */
final class Topologies {
    static JsonNode answer(JsonNode question) {
        Image image = new Image(question.get("topics"));
        ObjectNode answer = Oracle.MAPPER.createObjectNode();
        try {
            StreamsTopology topology = StreamsTopology.fromHeartbeatRequest(topology(question.get("topology")));
            topology.requiredTopics().forEach(answer.putArray("required")::add);
            ObjectNode sources = answer.putObject("sources");
            topology.sourceTopicMap().forEach((topic, subtopology) -> sources.put(topic, subtopology.subtopologyId()));
            answer.set("described", described(topology.asStreamsGroupDescribeTopology()));
            ConfiguredTopology configured = InternalTopicManager.configureTopics(new LogContext().logger(Topologies.class), "g", "m",
                question.get("hash").asLong(), topology, image, Time.SYSTEM);
            configured(configured, answer.putObject("configured"));
            if (configured.subtopologies().isPresent())
                endpoints(question, configured, image, answer);
        } catch (Exception error) {
            answer.setAll(Oracle.thrown(error));
        }
        return answer;
    }

    private static void configured(ConfiguredTopology topology, ObjectNode answer) {
        answer.put("epoch", topology.topologyEpoch()).put("hash", topology.metadataHash());
        answer.set("described", described(topology.asStreamsGroupDescribeTopology()));
        topology.topicConfigurationException().ifPresent(
            problem -> answer.putArray("problem").add(problem.status().name()).add(problem.getMessage()));
        ArrayNode create = answer.putArray("create");
        for (CreatableTopic topic : topology.internalTopicsToBeCreated().values()) {
            ArrayNode configs = create.addArray().add(topic.name()).add(topic.numPartitions()).add(topic.replicationFactor()).addArray();
            topic.configs().forEach(config -> configs.addArray().add(config.name()).add(config.value()));
        }
        topology.subtopologies().ifPresent(subtopologies -> {
            ArrayNode sizes = answer.putArray("sizes");
            TopologyMetadata metadata = new TopologyMetadata(CoordinatorMetadataImage.EMPTY, subtopologies);
            metadata.subtopologies().forEach(
                id -> sizes.addArray().add(id).add(metadata.maxNumInputPartitions(id)).add(metadata.isStateful(id)));
        });
    }

    private static void endpoints(JsonNode question, ConfiguredTopology configured, Image image, ObjectNode answer) {
        StreamsGroup group = new StreamsGroup(new LogContext(), new SnapshotRegistry(new LogContext()), "g");
        group.setConfiguredTopology(configured);
        Image seen = new Image(question.get("seen"));
        ArrayNode told = answer.putArray("endpoints");
        for (JsonNode member : question.get("members")) {
            Map<String, Map<Integer, Integer>> active = new LinkedHashMap<>();
            Oracle.tasks(member.get("active")).forEach((subtopology, numbers) -> numbers.forEach(
                number -> active.computeIfAbsent(subtopology, key -> new LinkedHashMap<>()).put(number, 1)));
            StreamsGroupMember found = new StreamsGroupMember.Builder("m")
                .setUserEndpoint(new StreamsGroupMemberMetadataValue.Endpoint().setHost("h").setPort(1))
                .setAssignedTasks(new TasksTupleWithEpochs(active, Oracle.tasks(member.get("standby")), Map.of()))
                .build();
            try {
                EndpointToPartitions endpoint = EndpointToPartitionsManager.maybeEndpointToPartitions(found, group, seen).orElseThrow();
                told.addArray().add(partitions(endpoint.activePartitions())).add(partitions(endpoint.standbyPartitions()));
            } catch (Exception error) {
                told.add(Oracle.thrown(error));
            }
        }
    }

    private static ArrayNode partitions(List<TopicPartition> topics) {
        ArrayNode node = Oracle.MAPPER.createArrayNode();
        topics.forEach(topic -> topic.partitions().forEach(node.addArray().add(topic.topic()).addArray()::add));
        return node;
    }

    private static ArrayNode described(StreamsGroupDescribeResponseData.Topology topology) {
        ArrayNode node = Oracle.MAPPER.createArrayNode();
        for (StreamsGroupDescribeResponseData.Subtopology each : topology.subtopologies()) {
            ArrayNode parts = node.addArray().add(each.subtopologyId());
            each.sourceTopics().forEach(parts.addArray()::add);
            each.repartitionSinkTopics().forEach(parts.addArray()::add);
            topics(each.repartitionSourceTopics(), parts.addArray());
            topics(each.stateChangelogTopics(), parts.addArray());
        }
        return node;
    }

    private static void topics(List<StreamsGroupDescribeResponseData.TopicInfo> topics, ArrayNode node) {
        for (StreamsGroupDescribeResponseData.TopicInfo topic : topics) {
            ArrayNode configs = node.addArray().add(topic.name()).add(topic.partitions()).add(topic.replicationFactor()).addArray();
            topic.topicConfigs().forEach(config -> configs.addArray().add(config.key()).add(config.value()));
        }
    }

    private static Topology topology(JsonNode node) {
        List<Subtopology> subtopologies = new ArrayList<>();
        node.get("subtopologies").forEach(each -> subtopologies.add(new Subtopology()
            .setSubtopologyId(each.get("id").asText())
            .setSourceTopics(texts(each.get("sources")))
            .setRepartitionSinkTopics(texts(each.get("sinks")))
            .setRepartitionSourceTopics(topics(each.get("repartition")))
            .setStateChangelogTopics(topics(each.get("changelogs")))
            .setCopartitionGroups(groups(each.get("copartition")))));
        return new Topology().setEpoch(node.get("epoch").asInt()).setSubtopologies(subtopologies);
    }

    private static List<TopicInfo> topics(JsonNode node) {
        List<TopicInfo> topics = new ArrayList<>();
        node.forEach(each -> {
            List<KeyValue> configs = new ArrayList<>();
            each.get(3).forEach(config -> configs.add(new KeyValue().setKey(config.get(0).asText()).setValue(config.get(1).asText())));
            topics.add(new TopicInfo().setName(each.get(0).asText()).setPartitions(each.get(1).asInt())
                .setReplicationFactor((short) each.get(2).asInt()).setTopicConfigs(configs));
        });
        return topics;
    }

    private static List<CopartitionGroup> groups(JsonNode node) {
        List<CopartitionGroup> groups = new ArrayList<>();
        node.forEach(each -> groups.add(new CopartitionGroup()
            .setSourceTopics(shorts(each.get(0))).setRepartitionSourceTopics(shorts(each.get(1)))));
        return groups;
    }

    private static List<Short> shorts(JsonNode node) {
        List<Short> numbers = new ArrayList<>();
        node.forEach(each -> numbers.add((short) each.asInt()));
        return numbers;
    }

    private static List<String> texts(JsonNode node) {
        List<String> texts = new ArrayList<>();
        node.forEach(each -> texts.add(each.asText()));
        return texts;
    }

    private Topologies() {
    }

    /** Topics that exist: {"name": partitions}. */
    private record Image(JsonNode topics) implements CoordinatorMetadataImage {
        private record Topic(String name, Uuid id, int partitionCount) implements TopicMetadata {
            @Override
            public List<String> partitionRacks(int partition) {
                return List.of();
            }
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(String name) {
            return Optional.ofNullable(topics.get(name)).map(count -> new Topic(name, new Uuid(0, 1 + name.hashCode()), count.asInt()));
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return Optional.empty();
        }

        @Override
        public Set<Uuid> topicIds() {
            return Set.of();
        }

        @Override
        public Set<String> topicNames() {
            return Set.of();
        }

        @Override
        public CoordinatorMetadataDelta emptyDelta() {
            return CoordinatorMetadataDelta.EMPTY;
        }

        @Override
        public long version() {
            return 1;
        }

        @Override
        public boolean isEmpty() {
            return false;
        }
    }
}
