"""A scenario from a group as it is: always one that loads, and only with variants that the group is not yet."""

from __future__ import annotations

import pytest

from kgctl.model.groups import GroupDescription, GroupState, GroupType, MemberDescription
from kgctl.simulate.scenario.load import LoadedFile, load
from kgctl.simulate.scenario.observed import Observed, scenario_text
from kgctl.yaml_files import read_yaml


def observed(
    *,
    client_id: str = "pay",
    assignor: str = "range",
    kind: GroupType = GroupType.CLASSIC,
    is_static: bool = False,
    lag: int | None = None,
) -> Observed:
    members = tuple(
        MemberDescription(f"m{number}", client_id, group_instance_id=f"pay-{number}" if is_static else None)
        for number in range(2)
    )
    group = GroupDescription("g", GroupState.STABLE, kind, assignor=assignor, members=members)
    return Observed(group=group, topics={"orders": 4}, lag=lag)


def loaded(given: Observed) -> LoadedFile:
    return load(read_yaml(scenario_text(given), "f"))


@pytest.mark.parametrize(
    ("client_id", "client"),
    [
        ("rdkafka", "librdkafka"),
        ("kafka-python-2.2.15", "kafka-python"),
        ("aiokafka-0.12.0", "aiokafka"),
        ("kgo", "franz-go"),
        ("worker@pod-7 (github.com/segmentio/kafka-go)", "kafka-go"),
        ("consumer-payments-1", "java"),
        ("payments-3", "java"),
    ],
)
def test_the_family_of_clients_is_known_by_the_id_that_they_have_by_default(client_id: str, client: str) -> None:
    text = scenario_text(observed(client_id=client_id))
    assert loaded(observed(client_id=client_id)).variants[0].scenario.members[0].client == client
    assert ("the brokers do not tell: or librdkafka" in text) == (client_id == "payments-3")


@pytest.mark.parametrize(
    ("given", "variants"),
    [
        (observed(), ("as-is", "cooperative", "static", "kip848")),
        (observed(assignor="cooperative-sticky"), ("as-is", "eager", "static", "kip848")),
        (observed(is_static=True), ("as-is", "cooperative", "kip848")),
        (observed(assignor="uniform", kind=GroupType.CONSUMER), ("as-is", "static")),
        (observed(assignor="uniform", kind=GroupType.CONSUMER, is_static=True), ("default",)),
    ],
)
def test_variants_are_what_the_group_is_not_yet(given: Observed, variants: tuple[str, ...]) -> None:
    file = loaded(given)
    assert file.variant_names == variants
    settings = [(variant.scenario.members[0].config, variant.scenario.members[0].instance_id) for variant in file.variants]
    assert len({str(each) for each in settings}) == len(settings)


def test_lag_is_told_without_traffic_too() -> None:
    assert "# the lag was 70; traffic:" in scenario_text(observed(lag=70))
    assert "the lag" not in scenario_text(observed())
