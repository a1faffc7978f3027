package org.apache.kafka.coordinator.group.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TaskAssignorException;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredInternalTopic;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredSubtopology;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;

/** A group and the target that Kafka's sticky task assignor makes for it, in the order of its maps and sets. */
final class TaskAssignments {
    static JsonNode answer(JsonNode question) {
        Map<String, AssignmentMemberSpec> members = new HashMap<>();
        question.get("members").forEach(member -> members.put(member.get("id").asText(), new AssignmentMemberSpec(
            Optional.empty(), Optional.empty(), Oracle.tasks(member.get("active")), Oracle.tasks(member.get("standby")), Map.of(),
            member.get("process").asText(), Map.of(), Map.of(), Map.of())));
        int replicas = question.get("standby_replicas").asInt();
        Map<String, String> settings = replicas == 0 ? Map.of() : Map.of("num.standby.replicas", String.valueOf(replicas));
        ObjectNode answer = Oracle.MAPPER.createObjectNode();
        try {
            Map<String, MemberAssignment> targets = new StickyTaskAssignor().assign(
                new GroupSpecImpl(Collections.unmodifiableMap(members), settings),
                new TopologyMetadata(CoordinatorMetadataImage.EMPTY, subtopologies(question.get("subtopologies")))).members();
            targets.forEach((member, target) -> {
                ArrayNode told = answer.putArray(member).add(Oracle.listed(target.activeTasks())).add(Oracle.listed(target.standbyTasks()));
                if (!target.warmupTasks().isEmpty())
                    told.add(Oracle.listed(target.warmupTasks()));
            });
        } catch (TaskAssignorException error) {
            answer.removeAll();
            answer.put("thrown", error.getMessage());
        }
        return answer;
    }

    private static SortedMap<String, ConfiguredSubtopology> subtopologies(JsonNode node) {
        SortedMap<String, ConfiguredSubtopology> found = new TreeMap<>();
        node.forEach(each -> {
            boolean isStateful = each.get("stateful").asBoolean();
            Map<String, ConfiguredInternalTopic> changelogs =
                isStateful ? Map.of("c", new ConfiguredInternalTopic("c", 1, Optional.empty(), Map.of())) : Map.of();
            found.put(each.get("id").asText(), new ConfiguredSubtopology(
                each.get("partitions").asInt(), Set.of("s"), Map.of(), Set.of(), changelogs));
        });
        return found;
    }

    private TaskAssignments() {
    }
}
