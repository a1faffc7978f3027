"""Quotas: what is kept, and what cannot be one."""

from __future__ import annotations

import pytest

from kgctl.server.quotas import Quotas, entity_of, entity_problem, value_problem
from kgctl.storage.files import Documents

ALICE = entity_of([("user", "alice"), ("client-id", "c")])


def test_quotas_are_kept_and_removed(caplog: pytest.LogCaptureFixture) -> None:
    folder = Documents()
    quotas = Quotas(folder)
    quotas.put({ALICE: {"producer_byte_rate": 10.0, "request_percentage": 5.0}})
    quotas.put({ALICE: {"producer_byte_rate": None}})

    assert list(Quotas(folder)) == [(ALICE, {"request_percentage": 5.0})]
    assert caplog.messages == ["quotas: kept and shown, and without effect here: nobody is slowed down"]

    quotas.put({ALICE: {"request_percentage": None}})

    assert list(Quotas(folder)) == []


def test_addresses_have_quotas_of_their_own() -> None:
    here = entity_of([("ip", "::1")])

    assert [entity_problem(here), value_problem(here, "connection_creation_rate", 5.0)] == [None, None]
    assert value_problem(here, "producer_byte_rate", 5.0) == "Invalid configuration key producer_byte_rate"
    assert value_problem(ALICE, "connection_creation_rate", 5.0) == "Invalid configuration key connection_creation_rate"
