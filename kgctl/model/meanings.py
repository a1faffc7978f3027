"""Enums whose members are written with what they mean."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Self


class MeantText(StrEnum):
    """A base of enums whose members are written as a text and what it means."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_, member.meaning = value, meaning
        return member


class MeantNumber(IntEnum):
    """A base of enums whose members are written as a number and what it means."""

    meaning: str

    def __new__(cls, value: int, meaning: str = "") -> Self:
        member = int.__new__(cls, value)
        member._value_, member.meaning = value, meaning
        return member
