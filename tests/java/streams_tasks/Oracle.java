package org.apache.kafka.coordinator.group.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.streams.processor.internals.ClassicStreams;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

/**
 * What Apache Kafka's own classes make of topologies of streams groups and of tasks to be assigned.
 *
 * One JSON object a line comes in, its "kind" says what it asks; one goes out: {"expect": ...}, or {"failure": "..."}.
 */
public final class Oracle {
    static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode told = MAPPER.createObjectNode();
            try {
                told.set("expect", answer(MAPPER.readTree(line)));
            } catch (Throwable error) {
                error.printStackTrace();
                told.put("failure", error.toString());
            }
            out.println(MAPPER.writeValueAsString(told));
            out.flush();
        }
    }

    private static JsonNode answer(JsonNode question) {
        switch (question.get("kind").asText()) {
            case "topology": return Topologies.answer(question);
            case "tasks": return TaskAssignments.answer(question);
            case "classic": return ClassicStreams.answer(question);
            case "user_data": return ClassicStreams.userData(question);
            default: throw new IllegalArgumentException(question.get("kind").asText());
        }
    }

    /** An exception as the client is told of it: without words, when it is none of the protocol's. */
    static ObjectNode thrown(Exception error) {
        Errors code = Errors.forException(error);
        ObjectNode node = MAPPER.createObjectNode();
        node.putArray("thrown").add(code.name()).add(code == Errors.UNKNOWN_SERVER_ERROR ? "" : error.getMessage());
        return node;
    }

    /** {"subtopology": [0, 1]}, in the order of the object. */
    static Map<String, Set<Integer>> tasks(JsonNode node) {
        Map<String, Set<Integer>> tasks = new LinkedHashMap<>();
        node.fields().forEachRemaining(each -> {
            Set<Integer> numbers = tasks.computeIfAbsent(each.getKey(), key -> new LinkedHashSet<>());
            each.getValue().forEach(number -> numbers.add(number.asInt()));
        });
        return tasks;
    }

    /** [["subtopology", [0, 1]]], in the order of the map and of its sets. */
    static ArrayNode listed(Map<String, ? extends Collection<Integer>> tasks) {
        ArrayNode node = MAPPER.createArrayNode();
        tasks.forEach((subtopology, numbers) -> numbers.forEach(node.addArray().add(subtopology).addArray()::add));
        return node;
    }

    private Oracle() {
    }
}
