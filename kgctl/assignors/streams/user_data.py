"""What Kafka Streams puts into the user data of a classic group's subscriptions and assignments, versions 1 to 11.

Kafka: SubscriptionInfoData.json, SubscriptionInfo, AssignmentInfo, ConsumerProtocolUtils; without named topologies, whose members
cannot be read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from uuid import UUID

from kgctl.assignors.high_availability import LATEST_OFFSET, UNKNOWN_OFFSET_SUM, NumberedTask, number_hash
from kgctl.model.groups import TopicPartition
from kgctl.model.values import frozen_in_order, hash_map_order, integer_hash, string_hash

LATEST_VERSION = 11
UNKNOWN_VERSION = -1
NO_REBALANCE_MS = 2**63 - 1
NONE, INCOMPLETE_SOURCE_TOPIC_METADATA, ASSIGNMENT_ERROR, SHUTDOWN_REQUESTED = 0, 1, 3, 4
"""Kafka: AssignorError."""
Partitions = tuple[TopicPartition, ...]
Host = tuple[str, int]
PartitionsByHost = Mapping[Host, Partitions]


class UserDataError(ValueError):
    """The bytes are no user data of Kafka Streams."""


@frozen_in_order
class SubscriptionInfo:
    """What a stream thread says of its instance and of the states that are there.

    ``offset_sums``: of a task that runs `LATEST_OFFSET`, of another with a state the sum of its changelogs' offsets; none of
    stateless tasks. ``unique_field`` differs from one joining to the next. ``user_endpoint``: "host:port".
    """

    process_id: UUID
    offset_sums: Mapping[NumberedTask, int] = field(default_factory=dict)
    user_endpoint: str | None = None
    unique_field: int = 0
    error_code: int = NONE
    client_tags: tuple[tuple[str, str], ...] = ()
    version: int = LATEST_VERSION
    latest_supported_version: int = LATEST_VERSION


@frozen_in_order
class AssignmentInfo:
    """What a stream thread is told beside its partitions.

    ``active``: the task of each partition, in the order of these; ``standby``: tasks to keep a copy of, with their partitions;
    by host what is active, and on standby, there; ``next_rebalance_ms``: when to join again, 0: at once. Written as they stand.
    """

    active: tuple[NumberedTask, ...] = ()
    standby: Mapping[NumberedTask, Partitions] = field(default_factory=dict)
    partitions_by_host: PartitionsByHost = field(default_factory=dict)
    standby_partitions_by_host: PartitionsByHost = field(default_factory=dict)
    error_code: int = NONE
    next_rebalance_ms: int = NO_REBALANCE_MS
    version: int = LATEST_VERSION
    commonly_supported_version: int = LATEST_VERSION


def partition_hash(partition: TopicPartition) -> int:
    """``hashCode`` of a ``TopicPartition``."""
    return 31 * (31 + partition.partition) + string_hash(partition.topic)


def encode_subscription_info(info: SubscriptionInfo) -> bytes:
    """Return the user data of a subscription, in the info's version."""
    version = info.version
    parts = [_ints(version), _ints(info.latest_supported_version) if version >= 3 else b"", info.process_id.bytes]
    if version < 7:
        parts += _task_sets(info.offset_sums)
    if version >= 2:
        parts.append(_bytes(info.user_endpoint or ""))
    if version >= 7:
        parts.append(_array(_sums(info.offset_sums, version)))
    if version >= 8:
        parts.append(struct.pack(">b", (info.unique_field + 128) % 256 - 128))
    if version >= 9:
        parts.append(_ints(info.error_code))
    if version >= 11:
        parts.append(_array([_bytes(name) + _bytes(value) for name, value in info.client_tags]))
    return b"".join(parts)


def _task_sets(sums: Mapping[NumberedTask, int]) -> Iterator[bytes]:
    """Running tasks and the others, as versions before 7 have them: two ``HashSet``s."""
    for is_running in (True, False):
        tasks = [task for task, offset in sums.items() if (offset == LATEST_OFFSET) == is_running]
        yield _array([_ints(*task) for task in hash_map_order(tasks, hash_of=number_hash)])


def _sums(sums: Mapping[NumberedTask, int], version: int) -> list[bytes]:
    if version >= 10:
        return [struct.pack(">iiqh", *task, offset, -1) for task, offset in sums.items()]
    groups: dict[int, list[bytes]] = {}
    for task, offset in sums.items():
        groups.setdefault(task.subtopology, []).append(struct.pack(">iq", task.partition, offset))
    order = hash_map_order(groups, hash_of=integer_hash, newest_first=True)
    return [_ints(subtopology) + _array(groups[subtopology]) for subtopology in order]


def encode_assignment_info(info: AssignmentInfo) -> bytes:
    """Return the user data of an assignment, in the info's version."""
    version = info.version
    parts = [_ints(version), _ints(info.commonly_supported_version) if version >= 3 else b""]
    parts.append(_array([_task(task, version) for task in info.active]))
    parts.append(_array([_task(task, version) + _partitions(partitions) for task, partitions in info.standby.items()]))
    if version >= 5:
        parts += _hosts_by_dictionary(info)
    elif version >= 2:
        parts.append(_array([_host(host) + _partitions(partitions) for host, partitions in info.partitions_by_host.items()]))
    if version >= 4:
        parts.append(_ints(info.error_code))
    if version >= 7:
        parts.append(struct.pack(">q", info.next_rebalance_ms))
    return b"".join(parts)


def _hosts_by_dictionary(info: AssignmentInfo) -> Iterator[bytes]:
    """Topics by number; the dictionary is a ``HashMap`` that the set of all partitions fills. Standbys since version 6."""
    maps = [info.partitions_by_host, info.standby_partitions_by_host][: 1 if info.version == 5 else 2]
    partitions = dict.fromkeys(partition for hosts in maps for listed in hosts.values() for partition in listed)
    topics = dict.fromkeys(partition.topic for partition in hash_map_order(partitions, hash_of=partition_hash))
    numbers = {topic: number for number, topic in enumerate(topics)}
    yield _array([_ints(numbers[topic]) + _utf(topic) for topic in hash_map_order(numbers)])
    for hosts in maps:
        yield _array(
            [
                _host(host) + _array([_ints(numbers[each.topic], each.partition) for each in listed])
                for host, listed in hosts.items()
            ]
        )


def _ints(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def _array(items: list[bytes]) -> bytes:
    return _ints(len(items)) + b"".join(items)


def _bytes(text: str) -> bytes:
    data = text.encode()
    return _ints(len(data)) + data


def _utf(text: str) -> bytes:
    """``DataOutputStream.writeUTF``: each UTF-16 unit by itself."""
    units = text.encode("utf-16-be", "surrogatepass")
    data = b"".join(chr(unit).encode("utf-8", "surrogatepass") for unit in struct.unpack(f">{len(units) // 2}H", units))
    return struct.pack(">H", len(data)) + data


def _task(task: NumberedTask, version: int) -> bytes:
    return _ints(*task, 0) if version >= 10 else _ints(*task)


def _host(host: Host) -> bytes:
    return _utf(host[0]) + _ints(host[1])


def _partitions(partitions: Iterable[TopicPartition]) -> bytes:
    return _array([_utf(each.topic) + _ints(each.partition) for each in partitions])


class _Reader:
    """Reads what the functions above write. Raises UserDataError where there is something else."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def numbers(self, form: str) -> tuple[int, ...]:
        try:
            found = struct.unpack_from(f">{form}", self._data, self._place)
        except struct.error as error:
            raise UserDataError(f"user data of Kafka Streams ends too early: {error}") from None
        self._place += struct.calcsize(f">{form}")
        return found

    def number(self) -> int:
        return self.numbers("i")[0]

    def times(self) -> range:
        """The length of an array, which cannot be longer than what is left."""
        count = self.number()
        if not 0 <= count <= len(self._data) - self._place:
            raise UserDataError(f"user data of Kafka Streams has an array of {count}")
        return range(count)

    def data(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self._place:
            raise UserDataError(f"user data of Kafka Streams has {size} bytes at its end")
        self._place += size
        return self._data[self._place - size : self._place]

    def text(self) -> str:
        return self.data(self.number()).decode("utf-8", "replace")

    def utf(self) -> str:
        found = self.data(self.numbers("H")[0]).decode("utf-8", "surrogatepass")
        return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def task(self, version: int) -> NumberedTask:
        subtopology, partition = self.numbers("ii")
        if version >= 10 and self.number():
            raise UserDataError("a task of a named topology")
        return NumberedTask(subtopology, partition)

    def partitions(self) -> Partitions:
        return tuple(TopicPartition(self.utf(), self.number()) for _ in self.times())


def decode_subscription_info(data: bytes) -> SubscriptionInfo:
    """What a subscription's user data says.

    Raises:
        UserDataError: it says nothing, has a version that Kafka 4.3 does not know, or named topologies.
    """
    read = _Reader(data)
    version = read.number()
    if not 1 <= version <= LATEST_VERSION:
        raise UserDataError(f"a subscription of Kafka Streams in version {version}; {LATEST_VERSION} is the last that is known")
    latest = read.number() if version >= 3 else UNKNOWN_VERSION
    process_id = UUID(bytes=read.data(16))
    sums = {} if version >= 7 else _read_task_sets(read)
    endpoint = read.text() if version >= 2 else ""
    if version >= 7:
        sums = _read_sums(read, version)
    unique = read.numbers("b")[0] if version >= 8 else 0
    error_code = read.number() if version >= 9 else NONE
    tags = tuple((read.text(), read.text()) for _ in read.times()) if version >= 11 else ()
    return SubscriptionInfo(process_id, sums, endpoint or None, unique, error_code, tags, version, latest)


def _read_task_sets(read: _Reader) -> dict[NumberedTask, int]:
    found = {}
    for offset in (LATEST_OFFSET, UNKNOWN_OFFSET_SUM):
        found.update({read.task(version=1): offset for _ in read.times()})
    return found


def _read_sums(read: _Reader, version: int) -> dict[NumberedTask, int]:
    found: dict[NumberedTask, int] = {}
    for _ in read.times():
        if version < 10:
            subtopology = read.number()
            rows = [read.numbers("iq") for _ in read.times()]
            found.update({NumberedTask(subtopology, partition): offset for partition, offset in rows})
            continue
        subtopology, partition, offset, name = read.numbers("iiqh")
        if name >= 0:
            raise UserDataError("a task of a named topology")
        found[NumberedTask(subtopology, partition)] = offset
    return found


def decode_assignment_info(data: bytes) -> AssignmentInfo:
    """What an assignment's user data says. Raises UserDataError as `decode_subscription_info` does."""
    read = _Reader(data)
    version = read.number()
    if not 1 <= version <= LATEST_VERSION:
        raise UserDataError(f"an assignment of Kafka Streams in version {version}; {LATEST_VERSION} is the last that is known")
    common = read.number() if version >= 3 else UNKNOWN_VERSION
    active = tuple(read.task(version) for _ in read.times())
    standby = {read.task(version): read.partitions() for _ in read.times()}
    hosts, standby_hosts = _read_hosts(read, version)
    error_code = read.number() if version >= 4 else NONE
    next_ms = read.numbers("q")[0] if version >= 7 else NO_REBALANCE_MS
    return AssignmentInfo(active, standby, hosts, standby_hosts, error_code, next_ms, version, common)


def _read_hosts(read: _Reader, version: int) -> tuple[PartitionsByHost, PartitionsByHost]:
    if version < 5:
        return ({(read.utf(), read.number()): read.partitions() for _ in read.times()} if version >= 2 else {}), {}
    topics = {read.number(): read.utf() for _ in read.times()}
    first = _read_numbered(read, topics)
    return first, (_read_numbered(read, topics) if version >= 6 else {})


def _read_numbered(read: _Reader, topics: Mapping[int, str]) -> PartitionsByHost:
    try:
        return {
            (read.utf(), read.number()): tuple(TopicPartition(topics[read.number()], read.number()) for _ in read.times())
            for _ in read.times()
        }
    except KeyError as error:
        raise UserDataError(f"topic {error} of an assignment's dictionary is not in it") from None
