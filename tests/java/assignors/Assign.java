import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/**
 * Kafka's own assignors, asked by JSON lines. A line is a document as FORMAT-assignors.md describes it, with "assignors"; the answer is
 * a line {"sticky": {"member": {"topic": [0, 1]}}, "uniform": {"error": "..."}}. One process answers any number of lines.
 */
public final class Assign {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            out.flush();
        }
    }

    private static ObjectNode answer(JsonNode document) {
        ObjectNode answers = JSON.createObjectNode();
        for (JsonNode name : document.get("assignors")) {
            ObjectNode answer = answers.putObject(name.asText());
            try {
                write(assign(document, name.asText()), answer);
            } catch (Throwable error) {
                answer.removeAll();
                answer.put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
            }
        }
        return answers;
    }

    private static Map<String, Map<String, List<Integer>>> assign(JsonNode document, String name) {
        boolean isServer = name.equals("uniform") || name.equals("server-range") || name.equals("simple");
        return isServer ? ServerGroup.assign(document, name) : ClientGroup.assign(document, name);
    }

    private static void write(Map<String, Map<String, List<Integer>>> assignment, ObjectNode answer) {
        assignment.forEach((member, topics) -> {
            ObjectNode node = answer.putObject(member);
            topics.forEach((topic, partitions) -> {
                node.withArray(topic);
                partitions.forEach(node.withArray(topic)::add);
            });
        });
    }
}
