"""Makes a member of the protocol that its settings name (``group.protocol``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING

from kgctl.member.api import Member, MemberIdentity, PositionsOf, Rng
from kgctl.member.classic_member import ClassicMember
from kgctl.member.config import MemberConfig
from kgctl.member.consumer_member import ConsumerMember
from kgctl.model.groups import TopicPartition

if TYPE_CHECKING:
    from kgctl.member.streams_api import TaskHost


def _nothing_processed(_partitions: Iterable[TopicPartition], _now_us: int) -> dict[TopicPartition, int]:
    return {}


def make_member(
    config: MemberConfig,
    identity: MemberIdentity,
    rng: Rng,
    *,
    positions_of: PositionsOf = _nothing_processed,
    request_ids: Iterator[int] | None = None,
) -> Member:
    """A member of the protocol that ``group.protocol`` names. See `kgctl.member.api` for the driver's duties.

    ``rng`` is the member's own seeded source. Without ``request_ids`` the member numbers its requests from 0.
    """
    ids = count() if request_ids is None else request_ids
    kind = ConsumerMember if config.group_protocol == "consumer" else ClassicMember
    return kind(config, identity, rng, positions_of, ids)


def make_streams_member(
    config: MemberConfig,
    identity: MemberIdentity,
    rng: Rng,
    *,
    positions_of: PositionsOf,
    request_ids: Iterator[int],
    host: TaskHost,
) -> Member:
    """A stream thread of Kafka Streams, of the protocol that ``group.protocol`` names; its tasks are ``host``'s."""
    if config.group_protocol == "streams":
        from kgctl.member.streams_protocol_member import StreamsProtocolMember

        return StreamsProtocolMember(config, identity, rng, positions_of, request_ids, host=host)
    from kgctl.member.streams_classic import ClassicStreamsMember

    return ClassicStreamsMember(config, identity, rng, positions_of, request_ids, host=host)
