"""Kafka's protocol error codes.

Names and numbers are Kafka's own (``org.apache.kafka.common.protocol.Errors``), so a name in a message can be looked up as it
stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, unique

from kgctl.model.values import quick_enum


@quick_enum
@unique
class ErrorCode(IntEnum):
    """A protocol error as it travels in a response; ``NONE`` means success. By name ``ErrorCode["UNKNOWN_MEMBER_ID"]``, by number
    ``ErrorCode(25)``.
    """

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133

    @property
    def is_retriable(self) -> bool:
        """Whether the same request may succeed later, as Kafka's ``RetriableException`` says."""
        return self in _RETRIABLE

    @property
    def is_timeout(self) -> bool:
        """Whether it says that time ran out, and it may have been done all the same. Kafka: ``TimeoutException``."""
        return self is ErrorCode.REQUEST_TIMED_OUT

    @property
    def text(self) -> str:
        """Return what it means, in a few words."""
        return _TEXTS[self]


_RETRIABLE = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)

_TEXTS: Mapping[ErrorCode, str] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "the broker failed in a way that has no code; its log says how",
    ErrorCode.NONE: "it worked",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset lies before the start or behind the end of the log",
    ErrorCode.CORRUPT_MESSAGE: "a record's checksum or form is wrong, or it lacks the key that a compacted topic needs",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "this broker does not have the topic or partition",
    ErrorCode.INVALID_FETCH_SIZE: "the size asked for in a fetch cannot be",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader at present; an election is under way",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "this broker is not, or no longer, the one to ask about the partition",
    ErrorCode.REQUEST_TIMED_OUT: "the broker did not get it done within the request's time limit",
    ErrorCode.BROKER_NOT_AVAILABLE: "the broker named is not there",
    ErrorCode.REPLICA_NOT_AVAILABLE: "the replica named is not on this broker",
    ErrorCode.MESSAGE_TOO_LARGE: "a record or batch is larger than the broker takes",
    ErrorCode.STALE_CONTROLLER_EPOCH: "the request comes from a controller that has been replaced",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "the text beside a committed offset is too long (offset.metadata.max.bytes)",
    ErrorCode.NETWORK_EXCEPTION: "the connection broke before the answer came",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the coordinator still reads its log and cannot answer yet",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "there is no coordinator for this group or transaction at present",
    ErrorCode.NOT_COORDINATOR: "this broker is not, or no longer, the coordinator: look it up again",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the topic's name is not allowed, or the topic is internal",
    ErrorCode.RECORD_LIST_TOO_LARGE: "the batch is larger than a segment of the log",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas; nothing was written",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "it was written, but fewer replicas are in sync than min.insync.replicas",
    ErrorCode.INVALID_REQUIRED_ACKS: "acks is none of 0, 1 and all",
    ErrorCode.ILLEGAL_GENERATION: "the group is in another generation than the member believes",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "the member shares no assignor, or not the protocol type, with the rest of the group",
    ErrorCode.INVALID_GROUP_ID: "the group's id is empty or otherwise not allowed",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has no such member: its session expired, it left, or it never joined",
    ErrorCode.INVALID_SESSION_TIMEOUT: "the session time-out is outside group.min and group.max.session.timeout.ms",
    ErrorCode.REBALANCE_IN_PROGRESS: "the group rebalances: join again",
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: "the commit is larger than the offsets topic takes",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this user may not do that with the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "this user may not do that with the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this user may not do that with the cluster",
    ErrorCode.INVALID_TIMESTAMP: "a record's timestamp is farther from the broker's clock than the topic allows",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "the broker does not offer this way to log in",
    ErrorCode.ILLEGAL_SASL_STATE: "the login's steps came in the wrong order",
    ErrorCode.UNSUPPORTED_VERSION: "the broker does not have this API, or not in this version",
    ErrorCode.TOPIC_ALREADY_EXISTS: "there is a topic of this name",
    ErrorCode.INVALID_PARTITIONS: "a topic cannot have this number of partitions",
    ErrorCode.INVALID_REPLICATION_FACTOR: "the number of replicas is below one, or above the number of brokers",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "the replicas named for a partition cannot be",
    ErrorCode.INVALID_CONFIG: "a setting does not exist or cannot have this value",
    ErrorCode.NOT_CONTROLLER: "this broker is not, or no longer, the controller",
    ErrorCode.INVALID_REQUEST: "the request contradicts itself, or a field cannot have this value; the broker's log says more",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "the topic's old record format cannot do this",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "a producer's batches did not come in order: one is missing",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "this batch of the producer was written before",
    ErrorCode.INVALID_PRODUCER_EPOCH: "a producer with an old epoch wrote",
    ErrorCode.INVALID_TXN_STATE: "the transaction is not in a state in which this can be done",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "the producer's id is not the one that its transactional id has",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "the transaction's time-out is above transaction.max.timeout.ms",
    ErrorCode.CONCURRENT_TRANSACTIONS: "the same transactional id still has something under way",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "a marker came from a transaction coordinator that has been replaced",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "this user may not use the transactional id",
    ErrorCode.SECURITY_DISABLED: "the cluster has no authoriser",
    ErrorCode.OPERATION_NOT_ATTEMPTED: "it was not tried, as another part of the same request failed",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker could not read or write its disk",
    ErrorCode.LOG_DIR_NOT_FOUND: "the log folder named is not one of the broker's",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "user or password is wrong",
    ErrorCode.UNKNOWN_PRODUCER_ID: "the broker knows nothing of this producer (any more)",
    ErrorCode.REASSIGNMENT_IN_PROGRESS: "the partition's replicas are being moved",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "delegation tokens are switched off",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "there is no such delegation token",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "the delegation token is another user's",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "delegation tokens cannot be asked for over this connection",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "this user may not do that with the delegation token",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "the delegation token has expired",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "the kind of principal is not supported",
    ErrorCode.NON_EMPTY_GROUP: "the group has members",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: "the broker has forgotten the fetch session",
    ErrorCode.INVALID_FETCH_SESSION_EPOCH: "the fetch session is at another step than the client believes",
    ErrorCode.LISTENER_NOT_FOUND: "the partition's leader has no listener of the name that this request came by",
    ErrorCode.TOPIC_DELETION_DISABLED: "topics cannot be deleted here (delete.topic.enable)",
    ErrorCode.FENCED_LEADER_EPOCH: "the client knows an older leader epoch than the broker",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "the client knows a newer leader epoch than the broker",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "the client does not support this compression",
    ErrorCode.STALE_BROKER_EPOCH: "the broker has been registered again since",
    ErrorCode.OFFSET_NOT_AVAILABLE: "a new leader does not know the high watermark yet",
    ErrorCode.MEMBER_ID_REQUIRED: "the member has just been given an id: join again with it",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "the preferred leader is not available",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "the group has group.max.size members",
    ErrorCode.FENCED_INSTANCE_ID: "another member has taken over the instance id",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "no replica that may lead is available",
    ErrorCode.ELECTION_NOT_NEEDED: "the partition has the leader that it should have",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "no replicas of the partition are being moved",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "the group's members read the topic",
    ErrorCode.INVALID_RECORD: "a record failed the broker's checks",
    ErrorCode.UNSTABLE_OFFSET_COMMIT: "an open transaction has offsets of these partitions: ask again when it has ended",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "a quota is used up",
    ErrorCode.PRODUCER_FENCED: "a newer producer has the same transactional id",
    ErrorCode.RESOURCE_NOT_FOUND: "what the request names does not exist",
    ErrorCode.DUPLICATE_RESOURCE: "the request names the same thing twice",
    ErrorCode.UNACCEPTABLE_CREDENTIAL: "the credential asked for does not meet the rules",
    ErrorCode.INCONSISTENT_VOTER_SET: "the voters of sender and receiver differ",
    ErrorCode.INVALID_UPDATE_VERSION: "the state was updated by somebody else meanwhile",
    ErrorCode.FEATURE_UPDATE_FAILED: "a feature level could not be changed",
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "the user that a broker passed on could not be read",
    ErrorCode.SNAPSHOT_NOT_FOUND: "there is no such snapshot",
    ErrorCode.POSITION_OUT_OF_RANGE: "the position lies outside the snapshot",
    ErrorCode.UNKNOWN_TOPIC_ID: "this broker does not know the topic's id",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "another broker is registered with this id",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "no broker is registered with this id",
    ErrorCode.INCONSISTENT_TOPIC_ID: "the topic's id in the log is not that of the request",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "the request is meant for another cluster",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "there is no such transactional id",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "a fetch session mixes topics by id and topics by name",
    ErrorCode.INELIGIBLE_REPLICA: "a replica that may not be in sync was to become so",
    ErrorCode.NEW_LEADER_ELECTED: "the partition got another leader by this change",
    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE: "the records at this offset have been moved to remote storage",
    ErrorCode.FENCED_MEMBER_EPOCH: "the member's epoch is not the coordinator's: it gives up its partitions and joins again",
    ErrorCode.UNRELEASED_INSTANCE_ID: "a living member has the instance id",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "the coordinator has no such assignor, or not for all of the group",
    ErrorCode.STALE_MEMBER_EPOCH: "the commit or fetch has an old member epoch: try again after the next heartbeat",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: "the request was meant for a broker and came to a controller, or the reverse",
    ErrorCode.UNSUPPORTED_ENDPOINT_TYPE: "this kind of endpoint is not supported yet",
    ErrorCode.UNKNOWN_CONTROLLER_ID: "there is no such controller",
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID: "the client's telemetry subscription is old",
    ErrorCode.TELEMETRY_TOO_LARGE: "the client's telemetry is larger than the broker takes",
    ErrorCode.INVALID_REGISTRATION: "a broker's registration cannot be accepted",
    ErrorCode.TRANSACTION_ABORTABLE: "the transaction has to be aborted, and can then be begun again",
    ErrorCode.INVALID_RECORD_STATE: "a record of a share group is not in a state in which this can be done",
    ErrorCode.SHARE_SESSION_NOT_FOUND: "the broker has forgotten the share session",
    ErrorCode.INVALID_SHARE_SESSION_EPOCH: "the share session is at another step than the client believes",
    ErrorCode.FENCED_STATE_EPOCH: "the share coordinator has a newer state epoch",
    ErrorCode.INVALID_VOTER_KEY: "the voter's key is not the receiver's",
    ErrorCode.DUPLICATE_VOTER: "the voter is one already",
    ErrorCode.VOTER_NOT_FOUND: "there is no such voter",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "the subscription's regular expression cannot be read by RE2",
    ErrorCode.REBOOTSTRAP_REQUIRED: "the client's addresses are out of date: it starts again from bootstrap.servers",
    ErrorCode.STREAMS_INVALID_TOPOLOGY: "the streams topology cannot be",
    ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH: "the epoch of the streams topology cannot be",
    ErrorCode.STREAMS_TOPOLOGY_FENCED: "the streams topology is behind the group's",
    ErrorCode.SHARE_SESSION_LIMIT_REACHED: "the broker has as many share sessions as it takes",
}
