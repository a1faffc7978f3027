"""The history of groups on ``kgctl serve``, over the wire and from its data folder, held against what the clients wrote down."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.pipeline.answers.history import History
from kgctl.pipeline.store.warehouse import Warehouse
from tests.support.pipeline.commands import run_history
from tests.support.pipeline.tables import copy_samples
from tests.support.pipeline.truth.check import certain_answers
from tests.support.pipeline.truth.traffic import drive
from tests.support.pipeline.warehouses import tables_of
from tests.support.serve import ServeFactory

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

CLUSTER = "c"
ROUNDS = 6
TIMES = 40


def test_wire_and_data_folder_tell_the_same_history(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    data, over_wire, at_rest = tmp_path / "data", tmp_path / "wire", tmp_path / "rest"
    server = kgctl_serve(data=data)
    ledger, _ = drive(server.bootstrap, ROUNDS)
    run_history("collect", over_wire, "--cluster", CLUSTER, "--bootstrap-server", server.bootstrap, "--once")
    assert server.terminate()[0] == 0
    run_history("collect", at_rest, "--cluster", CLUSTER, "--record-log", str(data))
    copy_samples(over_wire, at_rest, CLUSTER)
    copy_samples(at_rest, over_wire, CLUSTER)
    for warehouse in (over_wire, at_rest):
        run_history("build", warehouse, "--engine", "local")

    assert tables_of(Warehouse.open(over_wire), CLUSTER) == tables_of(Warehouse.open(at_rest), CLUSTER)

    assert certain_answers(History.open(at_rest), ledger, ledger.random_times(TIMES)) > 0.5
