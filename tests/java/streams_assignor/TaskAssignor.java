package org.apache.kafka.streams.processor.internals.assignment;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HexFormat;
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
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;

/** Kafka Streams' assignor and the bytes of its user data, a line in and a line out. */
public final class TaskAssignor {
    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\\|", -1);
            System.out.println(switch (parts[0]) {
                case "assign" -> assign(parts);
                case "subscription" -> subscription(parts);
                default -> assignment(parts);
            });
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

    /** subscription|UUID|UNIQUE|TASK=OFFSET ... */
    private static String subscription(String[] parts) {
        Map<TaskId, Long> sums = new TreeMap<>();
        for (String each : parts[3].isEmpty() ? new String[0] : parts[3].split(" ")) {
            String[] pair = each.split("=");
            sums.put(TaskId.parse(pair[0]), Long.parseLong(pair[1]));
        }
        ProcessId id = new ProcessId(UUID.fromString(parts[1]));
        byte unique = (byte) Integer.parseInt(parts[2]);
        return HexFormat.of().formatHex(new SubscriptionInfo(11, 11, id, null, sums, unique, 0, Map.of()).encode().array());
    }

    /** assignment|TASKS|NEXT|TASK TOPIC:PARTITION ...|... */
    private static String assignment(String[] parts) {
        Map<TaskId, Set<TopicPartition>> standbys = new LinkedHashMap<>();
        for (int each = 3; each < parts.length; each++) {
            String[] standby = parts[each].split(" ");
            Set<TopicPartition> partitions = new LinkedHashSet<>();
            for (int at = 1; at < standby.length; at++) {
                String[] pair = standby[at].split(":");
                partitions.add(new TopicPartition(pair[0], Integer.parseInt(pair[1])));
            }
            standbys.put(TaskId.parse(standby[0]), partitions);
        }
        AssignmentInfo info = new AssignmentInfo(11, 11, new ArrayList<>(tasks(parts[1])), standbys, Map.of(), Map.of(), 0);
        if (!parts[2].isEmpty()) {
            info.setNextRebalanceTime(Long.parseLong(parts[2]));
        }
        return HexFormat.of().formatHex(info.encode().array());
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
