package org.apache.kafka.coordinator.group;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;
import java.util.function.Function;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.share.persister.*;
import org.apache.kafka.server.util.PartitionMetadataClient;

/** Where Kafka's coordinator has share partitions' state kept: nothing is kept, every call waits until a step says what comes of it. */
final class ShareCalls implements Persister, PartitionMetadataClient {
    private static final String FAILURE = "it failed";
    private final VirtualBroker broker;
    private final List<Call> pending = new ArrayList<>();

    /** What is to be done when a step answers the call. */
    interface Call {
        void answer(JsonNode step);
    }

    ShareCalls(VirtualBroker broker) {
        this.broker = broker;
    }

    /** Answers one of the calls that wait, if any does. */
    void answer(JsonNode step) {
        if (!pending.isEmpty()) pending.remove(step.path("which").asInt() % pending.size()).answer(step);
    }

    private static Errors failure(JsonNode step) {
        return Errors.valueOf(step.path("error").asText("UNKNOWN_SERVER_ERROR"));
    }

    private Errors error(JsonNode step, String partition) {
        boolean failed = false;
        for (JsonNode name : step.path("some")) failed |= name.asText().equals(partition);
        return failed ? failure(step) : Errors.NONE;
    }

    private record PartitionOf<P>(String name, P partition) { }

    private <P extends PartitionIdData, E extends PartitionIdData, R> CompletableFuture<R> waiting(
        String kind, GroupTopicPartitionData<P> data, Function<P, ArrayNode> shown,
        BiFunction<JsonNode, PartitionOf<P>, E> outcome, Function<List<TopicData<E>>, R> result) {
        ObjectNode node = JsonNodeFactory.instance.objectNode().put("kind", kind).put("group", data.groupId());
        ArrayNode topics = node.putArray("topics");
        data.topicsData().forEach(topic -> {
            ArrayNode entry = topics.addArray().add(broker.topicNames.getOrDefault(topic.topicId(), topic.topicId().toString()));
            ArrayNode partitions = entry.addArray();
            topic.partitions().forEach(partition -> partitions.add(shown.apply(partition)));
        });
        broker.called(node);
        CompletableFuture<R> future = new CompletableFuture<>();
        pending.add(step -> {
            if (step.path("outcome").asText().equals("fail")) {
                future.completeExceptionally(failure(step).exception(FAILURE));
                return;
            }
            List<TopicData<E>> told = new ArrayList<>();
            data.topicsData().forEach(topic -> {
                String name = broker.topicNames.getOrDefault(topic.topicId(), topic.topicId().toString());
                List<E> partitions = new ArrayList<>();
                topic.partitions().forEach(partition ->
                    partitions.add(outcome.apply(step, new PartitionOf<>(name + "-" + partition.partition(), partition))));
                told.add(new TopicData<>(topic.topicId(), partitions));
            });
            future.complete(result.apply(told));
        });
        return future;
    }

    private static ArrayNode numbers(long... values) {
        ArrayNode array = JsonNodeFactory.instance.arrayNode();
        for (long value : values) array.add(value);
        return array;
    }

    private PartitionErrorData told(JsonNode step, PartitionOf<? extends PartitionIdData> partition) {
        Errors error = error(step, partition.name());
        return PartitionFactory.newPartitionErrorData(partition.partition().partition(), error.code(), error.message());
    }

    @Override
    public CompletableFuture<InitializeShareGroupStateResult> initializeState(InitializeShareGroupStateParameters request) {
        return waiting("initialize", request.groupTopicPartitionData(), p -> numbers(p.partition(), p.stateEpoch(), p.startOffset()),
            this::told, told -> new InitializeShareGroupStateResult.Builder().setTopicsData(told).build());
    }

    @Override
    public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
        return waiting("delete", request.groupTopicPartitionData(), p -> numbers(p.partition()), this::told,
            told -> new DeleteShareGroupStateResult.Builder().setTopicsData(told).build());
    }

    @Override
    public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(ReadShareGroupStateSummaryParameters request) {
        return waiting("summary", request.groupTopicPartitionData(), p -> numbers(p.partition()), (step, partition) -> {
            Errors error = error(step, partition.name());
            long start = step.path("start").asLong(3);
            return (PartitionStateSummaryData) PartitionFactory.newPartitionStateSummaryData(partition.partition().partition(), 2, start,
                step.path("done").asInt(1), 7, error.code(), error.message());
        }, told -> new ReadShareGroupStateSummaryResult.Builder().setTopicsData(told).build());
    }

    @Override
    public Map<TopicPartition, CompletableFuture<OffsetResponse>> listLatestOffsets(Set<TopicPartition> partitions) {
        Map<TopicPartition, CompletableFuture<OffsetResponse>> futures = new LinkedHashMap<>();
        TreeMap<String, TopicPartition> sorted = new TreeMap<>();
        partitions.forEach(partition -> {
            sorted.put(partition.toString(), partition);
            futures.put(partition, new CompletableFuture<>());
        });
        ObjectNode node = JsonNodeFactory.instance.objectNode().put("kind", "ends");
        node.set("partitions", Dump.strings(sorted.keySet()));
        broker.called(node);
        pending.add(step -> sorted.forEach((name, partition) -> {
            Errors error = step.path("outcome").asText().equals("fail") ? failure(step) : error(step, name);
            futures.get(partition).complete(new OffsetResponse(step.path("end").asLong(40) + partition.partition(), error));
        }));
        return futures;
    }

    @Override
    public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
        throw new UnsupportedOperationException();
    }

    @Override
    public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void stop() { }

    @Override
    public void close() { }
}
