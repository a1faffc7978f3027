"""Which rights a user lacks, as brokers tell it, and do not."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.admin import ItemError, Lacking, rights
from kgctl.admin.writes import lacking_on_groups, lacking_on_topics
from kgctl.model.error_codes import ErrorCode
from kgctl.wire import Deadline
from kgctl.wire.cluster import ClusterClient
from kgctl.wire.connection import DESCRIBE_GROUPS, METADATA
from tests.support.fake_broker import FakeBroker, metadata

READ, NOT_TOLD = 1 << 3, -(2**31)
NO_GROUP, NO_TOPIC = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("newest", "asked", "lacking"), [(6, 5, {"b"}), (5, 5, {"b"}), (3, 3, {"b"}), (2, None, set())])
def test_groups_are_asked_about_by_a_version_that_tells_of_all(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline, newest: int, asked: int | None, lacking: set[str]
) -> None:
    operations = {"a": READ, "b": 1 << 8, "c": NOT_TOLD, "d": 0}
    errors = {"d": NO_GROUP}

    def describe(request: Any) -> dict[str, Any]:
        names = request.body.groups
        told = [
            {"group_id": name, "authorized_operations": operations[name], "error_code": errors.get(name, 0)} for name in names
        ]
        return {"groups": told}

    broker.handlers[DESCRIBE_GROUPS] = describe
    broker.versions[DESCRIBE_GROUPS] = (0, newest)
    found = lacking_on_groups(cluster, [*operations], rights.COMMIT.group_bit, deadline)
    assert {group: error.code for group, error in found.items()} == dict.fromkeys(lacking, NO_GROUP)
    versions = {request.api_version for request in broker.requests if request.api_key == DESCRIBE_GROUPS.key}
    assert versions == ({asked} if asked else set())


@pytest.mark.parametrize(("newest", "lacking"), [(12, {"b"}), (8, {"b"}), (7, set())])
def test_topics_are_told_of_by_metadata(
    broker: FakeBroker, cluster: ClusterClient, deadline: Deadline, newest: int, lacking: set[str]
) -> None:
    operations = {"a": READ, "b": 1 << 8, "c": NOT_TOLD, "d": 0}
    errors = {"d": NO_TOPIC}
    topics = [
        {"name": name, "topic_authorized_operations": told, "error_code": errors.get(name, 0), "partitions": []}
        for name, told in operations.items()
    ]
    broker.handlers[METADATA] = lambda _: {**metadata([broker]), "topics": topics}
    broker.versions[METADATA] = (0, newest)
    found = lacking_on_topics(cluster, [*operations], rights.COMMIT.topic_bit, deadline)
    assert {topic: error.code for topic, error in found.items()} == dict.fromkeys(lacking, NO_TOPIC)


def test_a_commit_needs_the_rights_on_its_group_and_on_its_topic() -> None:
    of_group, of_topic = ItemError(NO_GROUP, "no READ on g"), ItemError(NO_TOPIC, "no READ on t")
    found = Lacking({"g": of_group}, {"t": of_topic})
    told = {(group, topic): found.of(group, topic) for group in ("g", "other") for topic in ("t", "more")}
    assert told == {("g", "t"): of_group, ("g", "more"): of_group, ("other", "t"): of_topic, ("other", "more"): None}
