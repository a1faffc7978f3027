package org.apache.kafka.coordinator.group;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.generated.*;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.consumer.ResolvedRegularExpression;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.coordinator.group.streams.StreamsGroup;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/** What is so in Kafka 4.3 alone. */
final class Version extends VirtualBroker {
    private ShareCalls calls;

    Version(Map<String, String> properties, AppendListener appendListener, ClockListener clockListener) {
        super(properties, appendListener, clockListener);
    }

    @Override
    GroupCoordinatorService start(Map<String, String> properties) {
        calls = new ShareCalls(this);
        GroupCoordinatorConfig config = GroupCoordinatorConfig.fromProps(properties);
        AbstractConfig shareProperties = new AbstractConfig(
            new ConfigDef(merge(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)), properties, false);
        ShareGroupConfig shareConfig = new ShareGroupConfig(shareProperties);
        GroupConfigManager groupConfigs = new GroupConfigManager(config.extractGroupConfigMap(shareConfig), config, shareConfig);
        GroupCoordinatorMetrics metrics = new GroupCoordinatorMetrics(new com.yammer.metrics.core.MetricsRegistry(), new Metrics());
        var runtime = runtime().withCoordinatorMetrics(metrics)
            .withCoordinatorShardBuilderSupplier(() -> new GroupCoordinatorShard.Builder(config, groupConfigs) {
                @Override
                public GroupCoordinatorShard build() {
                    return built(super.build());
                }
            }.withAuthorizerPlugin(Optional.empty()))
            .withWriteTimeout(Duration.ofMillis(config.offsetCommitTimeoutMs()))
            .withAppendLingerMs(OptionalInt.of(0)).withCachedBufferMaxBytesSupplier(config::cachedBufferMaxBytes).build();
        return new GroupCoordinatorService(new LogContext(), config, runtime, metrics, groupConfigs, calls, timer, calls);
    }

    private static ConfigDef merge(ConfigDef... definitions) {
        ConfigDef merged = new ConfigDef();
        for (ConfigDef definition : definitions) definition.configKeys().values().forEach(merged::define);
        return merged;
    }

    @Override
    CompletableFuture<ObjectNode> newer(JsonNode step) {
        boolean streams = StreamsRequests.KNOWN.contains(step.get("op").asText());
        return streams ? new StreamsRequests(this).send(step) : new ShareRequests(this, calls).send(step);
    }

    @Override
    void showNewer(ObjectNode node, Group group, GroupMetadataManager manager, Dump dump) {
        if (group instanceof StreamsGroup streams) StreamsRequests.show(node, streams);
        else ShareRequests.show(node, group, manager, dump);
    }

    @Override
    void tell(MetadataDelta delta, MetadataImage image, List<TopicPartition> deleted) {
        service.onMetadataUpdate(delta, image);
    }

    @Override
    CompletableFuture<OffsetFetchResponseData.OffsetFetchResponseGroup> fetch(
        RequestContext context, OffsetFetchRequestData.OffsetFetchRequestGroup request, boolean stable) {
        return service.fetchOffsets(context, request, stable);
    }

    @Override
    CompletableFuture<Void> endTransaction(long producerId, TransactionResult result) {
        return service.completeTransaction(LOG, producerId, (short) 0, 0, result, (short) 1);
    }

    @Override
    public long append(TopicPartition tp, VerificationGuard guard, MemoryRecords records, short transactionVersion) {
        return append(records);
    }

    @Override
    public CompletableFuture<VerificationGuard> maybeStartTransactionVerification(
        TopicPartition tp, String transactionalId, long producerId, short producerEpoch, int apiVersion) {
        return CompletableFuture.completedFuture(VerificationGuard.SENTINEL);
    }

    // Requests, records and members.

    static OffsetCommitRequestData.OffsetCommitRequestTopic withId(OffsetCommitRequestData.OffsetCommitRequestTopic topic, Uuid id) {
        return topic.setTopicId(id);
    }

    static ApiMessageAndVersion withId(OffsetCommitValue value, Uuid topicId) {
        return new ApiMessageAndVersion(value.setTopicId(topicId), (short) 4);
    }

    static CoordinatorRecord record(ApiMessage key, int type, ApiMessageAndVersion value) {
        return CoordinatorRecord.record(key, value);
    }

    static ApiMessage key(CoordinatorRecord record) {
        return record.key();
    }

    static long metadataHash(ConsumerGroupMetadataValue value) {
        return value.metadataHash();
    }

    static long assignmentTimestamp(ConsumerGroupTargetAssignmentMetadataValue value) {
        return value.assignmentTimestamp();
    }

    static List<Integer> assignmentEpochs(ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions topic) {
        return topic.assignmentEpochs();
    }

    static Map<Uuid, Map<Integer, Integer>> withEpochs(Map<Uuid, Map<Integer, Integer>> partitions) {
        return partitions;
    }

    static Collection<String> topics(ResolvedRegularExpression expression) {
        return expression.topics();
    }
}
