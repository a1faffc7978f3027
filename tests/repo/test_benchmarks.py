"""The benchmarks still run; their numbers are for a person, on a quiet machine."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.benchmarks.__main__ import RATES, SUBJECTS, main
from tests.repo.project import ROOT

SMALLEST = ["--small", "--runs", "1"]
QUICK = ("codec", "heartbeats", "tables", "simulate", "coordinator", "describe-group")
"""The programs that every run tries; the others, some of which start a JVM, are deep."""


def programs(names: Iterable[str]) -> list[ParameterSet]:
    """Return a parameter for each, marked where it is deep."""
    return [pytest.param(name, marks=[] if name in QUICK else pytest.mark.deep) for name in names]


def tables(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed below the line that says which Python that was."""
    python, _, printed = capsys.readouterr().out.split("\n", maxsplit=2)
    assert python.startswith(str(Path(sys.executable).resolve()))
    assert sys.version.split()[0] in python
    return printed


def test_start_up_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["start-up", *SMALLEST]) == 0
    printed = tables(capsys)
    assert printed.startswith("kgctl --help, whole process: target 0.120 s ")
    assert "kafka-python's CLI --help" in printed


def test_the_list_of_scenarios_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate-list", *SMALLEST]) == 0
    assert tables(capsys).startswith("kgctl simulate list, whole process: target 0.300 s ")


@pytest.mark.interop
@pytest.mark.parametrize("name", programs(RATES))
def test_rates_are_measured_against_kgctl_serve(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, *SMALLEST, "--cluster", "serve", "--against-checkout", str(ROOT)]) == 0, capsys.readouterr().err
    assert tables(capsys).startswith(RATES[name].title)


def test_another_checkout_has_to_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate-beside", *SMALLEST]) == 1
    assert "--against-checkout DIR" in capsys.readouterr().err


@pytest.mark.interop
@pytest.mark.parametrize("subject", programs(name for name, subject in SUBJECTS.items() if subject.size is not None))
def test_subject_runs_against_kgctl_serve(subject: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([subject, *SMALLEST, "--cluster", "serve"]) == 0, capsys.readouterr().err


@pytest.mark.deep
@pytest.mark.kafka
def test_subject_runs_against_apache_kafka(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe-group", *SMALLEST, "--cluster", "kafka"]) == 0, capsys.readouterr().err
    assert "kafka-consumer-groups.sh" in capsys.readouterr().out
