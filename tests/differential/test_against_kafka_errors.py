"""The table of error codes beside Kafka's own."""

from __future__ import annotations

import subprocess

import pytest

from kgctl.model.error_codes import ErrorCode
from tests.support.java_assignors import SOURCES
from tests.support.maven import compile_java, java_command

pytestmark = [pytest.mark.kafka, pytest.mark.needs("javac")]


def test_numbers_names_and_what_may_be_tried_again_are_kafkas() -> None:
    classes = compile_java(SOURCES / "pom.xml", sorted(SOURCES.glob("*.java")))
    told = subprocess.run(java_command(classes, "ErrorCodes"), check=True, capture_output=True, text=True).stdout
    ours = [f"{code.value} {code.name} {code.is_retriable} {code.is_timeout}" for code in ErrorCode]

    assert [line.lower() for line in ours] == told.lower().splitlines()


def test_every_code_has_a_text_of_its_own() -> None:
    texts = [code.text for code in ErrorCode]
    assert all(texts)
    assert len(set(texts)) == len(texts)
