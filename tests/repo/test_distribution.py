"""What tests share stays in one process: without their groups each process would start the servers of all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling

from tests.repo.project import ROOT
from tests.support.distribution import LONG, REPLACED, Interactor, group_of


def test_the_groups_that_a_worker_tells_are_those_that_are_scheduled(request: pytest.FixtureRequest) -> None:
    told: dict[str, Any] = {}

    def sendevent(_name: str, **event: Any) -> None:
        told.update(event)

    session: Any = SimpleNamespace(items=request.session.items, config=request.config)
    Interactor(SimpleNamespace(sendevent=sendevent)).pytest_collection_finish(session)

    scheduled = [LoadGroupScheduling._split_scope(object.__new__(LoadGroupScheduling), name) for name in told["ids"]]
    assert scheduled == [group_of(item) for item in request.session.items]


def test_a_worker_has_no_other_voice(pytestconfig: pytest.Config) -> None:
    voices = {type(each.plugin).__name__ for name in REPLACED for each in getattr(pytestconfig.hook, name).get_hookimpls()} & {
        "WorkerInteractor",
        "Interactor",
    }
    assert voices == ({"Interactor"} if hasattr(pytestconfig, "workerinput") else set())


def test_long_files_are_there() -> None:
    assert [name for name in LONG if not (ROOT / name).is_file()] == []
