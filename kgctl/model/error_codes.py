"""Kafka's protocol error codes.

Names and numbers are Kafka's own (``org.apache.kafka.common.protocol.Errors``), so a name in a message can be looked up as it
stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, unique
from typing import Self

from kgctl.model.values import quick_enum

_RETRIABLE = True


@quick_enum
@unique
class ErrorCode(IntEnum):
    """A protocol error as it travels in a response; ``NONE`` means success. By name ``ErrorCode["UNKNOWN_MEMBER_ID"]``, by number
    ``ErrorCode(25)``.
    """

    _text: str
    _is_retriable: bool

    def __new__(cls, number: int, text: str = "", is_retriable: bool = False) -> Self:  # noqa: FBT001, FBT002
        code = int.__new__(cls, number)
        code._value_, code._text, code._is_retriable = number, text, is_retriable
        return code

    UNKNOWN_SERVER_ERROR = -1, "the broker failed in a way that has no code; its log says how"
    NONE = 0, "it worked"
    OFFSET_OUT_OF_RANGE = 1, "the offset lies before the start or behind the end of the log"
    CORRUPT_MESSAGE = 2, "a record's checksum or form is wrong, or it lacks the key that a compacted topic needs", _RETRIABLE
    UNKNOWN_TOPIC_OR_PARTITION = 3, "this broker does not have the topic or partition", _RETRIABLE
    INVALID_FETCH_SIZE = 4, "the size asked for in a fetch cannot be"
    LEADER_NOT_AVAILABLE = 5, "the partition has no leader at present; an election is under way", _RETRIABLE
    NOT_LEADER_OR_FOLLOWER = 6, "this broker is not, or no longer, the one to ask about the partition", _RETRIABLE
    REQUEST_TIMED_OUT = 7, "the broker did not get it done within the request's time limit", _RETRIABLE
    BROKER_NOT_AVAILABLE = 8, "the broker named is not there"
    REPLICA_NOT_AVAILABLE = 9, "the replica named is not on this broker", _RETRIABLE
    MESSAGE_TOO_LARGE = 10, "a record or batch is larger than the broker takes"
    STALE_CONTROLLER_EPOCH = 11, "the request comes from a controller that has been replaced"
    OFFSET_METADATA_TOO_LARGE = 12, "the text beside a committed offset is too long (offset.metadata.max.bytes)"
    NETWORK_EXCEPTION = 13, "the connection broke before the answer came", _RETRIABLE
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the coordinator still reads its log and cannot answer yet", _RETRIABLE
    COORDINATOR_NOT_AVAILABLE = 15, "there is no coordinator for this group or transaction at present", _RETRIABLE
    NOT_COORDINATOR = 16, "this broker is not, or no longer, the coordinator: look it up again", _RETRIABLE
    INVALID_TOPIC_EXCEPTION = 17, "the topic's name is not allowed, or the topic is internal"
    RECORD_LIST_TOO_LARGE = 18, "the batch is larger than a segment of the log"
    NOT_ENOUGH_REPLICAS = 19, "fewer replicas are in sync than min.insync.replicas; nothing was written", _RETRIABLE
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "it was written, but fewer replicas are in sync than min.insync.replicas", _RETRIABLE
    INVALID_REQUIRED_ACKS = 21, "acks is none of 0, 1 and all"
    ILLEGAL_GENERATION = 22, "the group is in another generation than the member believes"
    INCONSISTENT_GROUP_PROTOCOL = 23, "the member shares no assignor, or not the protocol type, with the rest of the group"
    INVALID_GROUP_ID = 24, "the group's id is empty or otherwise not allowed"
    UNKNOWN_MEMBER_ID = 25, "the group has no such member: its session expired, it left, or it never joined"
    INVALID_SESSION_TIMEOUT = 26, "the session time-out is outside group.min and group.max.session.timeout.ms"
    REBALANCE_IN_PROGRESS = 27, "the group rebalances: join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, "the commit is larger than the offsets topic takes"
    TOPIC_AUTHORIZATION_FAILED = 29, "this user may not do that with the topic"
    GROUP_AUTHORIZATION_FAILED = 30, "this user may not do that with the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, "this user may not do that with the cluster"
    INVALID_TIMESTAMP = 32, "a record's timestamp is farther from the broker's clock than the topic allows"
    UNSUPPORTED_SASL_MECHANISM = 33, "the broker does not offer this way to log in"
    ILLEGAL_SASL_STATE = 34, "the login's steps came in the wrong order"
    UNSUPPORTED_VERSION = 35, "the broker does not have this API, or not in this version"
    TOPIC_ALREADY_EXISTS = 36, "there is a topic of this name"
    INVALID_PARTITIONS = 37, "a topic cannot have this number of partitions"
    INVALID_REPLICATION_FACTOR = 38, "the number of replicas is below one, or above the number of brokers"
    INVALID_REPLICA_ASSIGNMENT = 39, "the replicas named for a partition cannot be"
    INVALID_CONFIG = 40, "a setting does not exist or cannot have this value"
    NOT_CONTROLLER = 41, "this broker is not, or no longer, the controller", _RETRIABLE
    INVALID_REQUEST = 42, "the request contradicts itself, or a field cannot have this value; the broker's log says more"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the topic's old record format cannot do this"
    POLICY_VIOLATION = 44, "a policy of the cluster forbids it"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "a producer's batches did not come in order: one is missing"
    DUPLICATE_SEQUENCE_NUMBER = 46, "this batch of the producer was written before"
    INVALID_PRODUCER_EPOCH = 47, "a producer with an old epoch wrote"
    INVALID_TXN_STATE = 48, "the transaction is not in a state in which this can be done"
    INVALID_PRODUCER_ID_MAPPING = 49, "the producer's id is not the one that its transactional id has"
    INVALID_TRANSACTION_TIMEOUT = 50, "the transaction's time-out is above transaction.max.timeout.ms"
    CONCURRENT_TRANSACTIONS = 51, "the same transactional id still has something under way", _RETRIABLE
    TRANSACTION_COORDINATOR_FENCED = 52, "a marker came from a transaction coordinator that has been replaced"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "this user may not use the transactional id"
    SECURITY_DISABLED = 54, "the cluster has no authoriser"
    OPERATION_NOT_ATTEMPTED = 55, "it was not tried, as another part of the same request failed"
    KAFKA_STORAGE_ERROR = 56, "the broker could not read or write its disk", _RETRIABLE
    LOG_DIR_NOT_FOUND = 57, "the log folder named is not one of the broker's"
    SASL_AUTHENTICATION_FAILED = 58, "user or password is wrong"
    UNKNOWN_PRODUCER_ID = 59, "the broker knows nothing of this producer (any more)"
    REASSIGNMENT_IN_PROGRESS = 60, "the partition's replicas are being moved"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "delegation tokens are switched off"
    DELEGATION_TOKEN_NOT_FOUND = 62, "there is no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "the delegation token is another user's"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "delegation tokens cannot be asked for over this connection"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "this user may not do that with the delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, "the kind of principal is not supported"
    NON_EMPTY_GROUP = 68, "the group has members"
    GROUP_ID_NOT_FOUND = 69, "there is no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, "the broker has forgotten the fetch session", _RETRIABLE
    INVALID_FETCH_SESSION_EPOCH = 71, "the fetch session is at another step than the client believes", _RETRIABLE
    LISTENER_NOT_FOUND = 72, "the partition's leader has no listener of the name that this request came by", _RETRIABLE
    TOPIC_DELETION_DISABLED = 73, "topics cannot be deleted here (delete.topic.enable)"
    FENCED_LEADER_EPOCH = 74, "the client knows an older leader epoch than the broker", _RETRIABLE
    UNKNOWN_LEADER_EPOCH = 75, "the client knows a newer leader epoch than the broker", _RETRIABLE
    UNSUPPORTED_COMPRESSION_TYPE = 76, "the client does not support this compression"
    STALE_BROKER_EPOCH = 77, "the broker has been registered again since"
    OFFSET_NOT_AVAILABLE = 78, "a new leader does not know the high watermark yet", _RETRIABLE
    MEMBER_ID_REQUIRED = 79, "the member has just been given an id: join again with it"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "the preferred leader is not available", _RETRIABLE
    GROUP_MAX_SIZE_REACHED = 81, "the group has group.max.size members"
    FENCED_INSTANCE_ID = 82, "another member has taken over the instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "no replica that may lead is available", _RETRIABLE
    ELECTION_NOT_NEEDED = 84, "the partition has the leader that it should have", _RETRIABLE
    NO_REASSIGNMENT_IN_PROGRESS = 85, "no replicas of the partition are being moved"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "the group's members read the topic"
    INVALID_RECORD = 87, "a record failed the broker's checks"
    UNSTABLE_OFFSET_COMMIT = 88, "an open transaction has offsets of these partitions: ask again when it has ended", _RETRIABLE
    THROTTLING_QUOTA_EXCEEDED = 89, "a quota is used up", _RETRIABLE
    PRODUCER_FENCED = 90, "a newer producer has the same transactional id"
    RESOURCE_NOT_FOUND = 91, "what the request names does not exist"
    DUPLICATE_RESOURCE = 92, "the request names the same thing twice"
    UNACCEPTABLE_CREDENTIAL = 93, "the credential asked for does not meet the rules"
    INCONSISTENT_VOTER_SET = 94, "the voters of sender and receiver differ"
    INVALID_UPDATE_VERSION = 95, "the state was updated by somebody else meanwhile"
    FEATURE_UPDATE_FAILED = 96, "a feature level could not be changed"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "the user that a broker passed on could not be read"
    SNAPSHOT_NOT_FOUND = 98, "there is no such snapshot"
    POSITION_OUT_OF_RANGE = 99, "the position lies outside the snapshot"
    UNKNOWN_TOPIC_ID = 100, "this broker does not know the topic's id", _RETRIABLE
    DUPLICATE_BROKER_REGISTRATION = 101, "another broker is registered with this id"
    BROKER_ID_NOT_REGISTERED = 102, "no broker is registered with this id"
    INCONSISTENT_TOPIC_ID = 103, "the topic's id in the log is not that of the request", _RETRIABLE
    INCONSISTENT_CLUSTER_ID = 104, "the request is meant for another cluster"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "there is no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "a fetch session mixes topics by id and topics by name", _RETRIABLE
    INELIGIBLE_REPLICA = 107, "a replica that may not be in sync was to become so"
    NEW_LEADER_ELECTED = 108, "the partition got another leader by this change"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "the records at this offset have been moved to remote storage"
    FENCED_MEMBER_EPOCH = 110, "the member's epoch is not the coordinator's: it gives up its partitions and joins again"
    UNRELEASED_INSTANCE_ID = 111, "a living member has the instance id"
    UNSUPPORTED_ASSIGNOR = 112, "the coordinator has no such assignor, or not for all of the group"
    STALE_MEMBER_EPOCH = 113, "the commit or fetch has an old member epoch: try again after the next heartbeat"
    MISMATCHED_ENDPOINT_TYPE = 114, "the request was meant for a broker and came to a controller, or the reverse"
    UNSUPPORTED_ENDPOINT_TYPE = 115, "this kind of endpoint is not supported yet"
    UNKNOWN_CONTROLLER_ID = 116, "there is no such controller"
    UNKNOWN_SUBSCRIPTION_ID = 117, "the client's telemetry subscription is old"
    TELEMETRY_TOO_LARGE = 118, "the client's telemetry is larger than the broker takes"
    INVALID_REGISTRATION = 119, "a broker's registration cannot be accepted"
    TRANSACTION_ABORTABLE = 120, "the transaction has to be aborted, and can then be begun again"
    INVALID_RECORD_STATE = 121, "a record of a share group is not in a state in which this can be done"
    SHARE_SESSION_NOT_FOUND = 122, "the broker has forgotten the share session", _RETRIABLE
    INVALID_SHARE_SESSION_EPOCH = 123, "the share session is at another step than the client believes", _RETRIABLE
    FENCED_STATE_EPOCH = 124, "the share coordinator has a newer state epoch"
    INVALID_VOTER_KEY = 125, "the voter's key is not the receiver's"
    DUPLICATE_VOTER = 126, "the voter is one already"
    VOTER_NOT_FOUND = 127, "there is no such voter"
    INVALID_REGULAR_EXPRESSION = 128, "the subscription's regular expression cannot be read by RE2"
    REBOOTSTRAP_REQUIRED = 129, "the client's addresses are out of date: it starts again from bootstrap.servers"
    STREAMS_INVALID_TOPOLOGY = 130, "the streams topology cannot be"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "the epoch of the streams topology cannot be"
    STREAMS_TOPOLOGY_FENCED = 132, "the streams topology is behind the group's"
    SHARE_SESSION_LIMIT_REACHED = 133, "the broker has as many share sessions as it takes", _RETRIABLE

    @property
    def is_retriable(self) -> bool:
        """Whether the same request may succeed later, as Kafka's ``RetriableException`` says."""
        return self._is_retriable

    @property
    def is_timeout(self) -> bool:
        """Whether it says that time ran out, and it may have been done all the same. Kafka: ``TimeoutException``."""
        return self is ErrorCode.REQUEST_TIMED_OUT

    @property
    def text(self) -> str:
        """Return what it means, in a few words."""
        return self._text


UNSETTLED = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors that pass when the cluster has settled: asked again for a while, and then nobody's fault but the cluster's."""

KAFKAS_WORDS: Mapping[ErrorCode, str] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "The server experienced an unexpected error when processing the request.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.LEADER_NOT_AVAILABLE: (
        "There is no leader for this topic-partition as we are in the middle of a leadership election."
    ),
    ErrorCode.NOT_LEADER_OR_FOLLOWER: (
        "For requests intended only for the leader, this error indicates that the broker is not the current leader. "
        "For requests intended for any replica, this error indicates that the broker is not a replica of the topic partition."
    ),
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.INVALID_GROUP_ID: "The group id is invalid.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.UNSUPPORTED_VERSION: "The version of API is not supported.",
    ErrorCode.INVALID_REQUEST: (
        "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
        "incompatible broker. See the broker logs for more details."
    ),
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.FENCED_LEADER_EPOCH: "The leader epoch in the request is older than the epoch on the broker.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."
    ),
    ErrorCode.FENCED_STATE_EPOCH: "The share coordinator rejected the request because the share-group state epoch did not match.",
}
"""What Errors#message says, of errors whose words are seen: in answers of brokers, and by Kafka's own tools."""
