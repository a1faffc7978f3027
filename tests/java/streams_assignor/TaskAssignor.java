package org.apache.kafka.streams.processor.internals.assignment;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;

/** Kafka Streams' assignor, a line in and a line out. */
public final class TaskAssignor {
    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\\|", -1);
            System.out.println(assign(parts));
            System.out.flush();
        }
    }

    /** assign|LAG WARMUPS STANDBYS|TASKS|STATEFUL TASKS|UUID CAPACITY TASK=LAG ...|... */
    private static String assign(String[] parts) {
        String[] numbers = parts[1].split(" ");
        AssignmentConfigs configs = new AssignmentConfigs(Long.parseLong(numbers[0]), Integer.parseInt(numbers[1]),
            Integer.parseInt(numbers[2]), 600_000L, List.of(), OptionalInt.empty(), OptionalInt.empty(), "none");
        Map<ProcessId, ClientState> clients = new LinkedHashMap<>();
        for (int each = 4; each < parts.length; each++) {
            String[] client = parts[each].split(" ");
            Map<TaskId, Long> lags = new TreeMap<>();
            for (int task = 2; task < client.length; task++) {
                String[] pair = client[task].split("=");
                lags.put(TaskId.parse(pair[0]), Long.parseLong(pair[1]));
            }
            ProcessId id = new ProcessId(UUID.fromString(client[0]));
            clients.put(id, new ClientState(Set.of(), Set.of(), lags, Map.of(), Integer.parseInt(client[1]), id));
        }
        RackAwareTaskAssignor racks = new RackAwareTaskAssignor(
            Cluster.empty(), Map.of(), Map.of(), Map.of(), Map.of(), null, configs, Time.SYSTEM);
        boolean probes = new HighAvailabilityTaskAssignor().assign(clients, tasks(parts[2]), tasks(parts[3]), racks, configs);
        StringBuilder answer = new StringBuilder().append(probes);
        clients.forEach((id, client) -> answer.append('|').append(text(client.activeTasks())).append('/')
            .append(text(client.standbyTasks())));
        return answer.toString();
    }

    private static Set<TaskId> tasks(String text) {
        Set<TaskId> found = new LinkedHashSet<>();
        for (String each : text.isEmpty() ? new String[0] : text.split(" ")) {
            found.add(TaskId.parse(each));
        }
        return found;
    }

    private static String text(Set<TaskId> tasks) {
        StringBuilder found = new StringBuilder();
        new TreeSet<>(tasks).forEach(task -> found.append(found.isEmpty() ? "" : " ").append(task));
        return found.toString();
    }
}
