"""What the user says about the connection: ``--command-config FILE`` and ``-X key=value``, as librdkafka's properties.

A name that neither librdkafka nor a Java client knows is an error that names its nearest neighbour, never dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kgctl.admin.config.java_client import Fail, translate
from kgctl.admin.config.java_syntax import Property, parse_properties
from kgctl.admin.config.librdkafka import KNOWN_PROPERTIES
from kgctl.errors import UsageError, did_you_mean

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_BOOLEANS = {"true": "true", "t": "true", "1": "true", "yes": "true", "false": "false", "f": "false", "0": "false", "no": "false"}


def load_command_config(path: Path) -> Mapping[str, str]:
    """A properties file of a Java client, or one with librdkafka's names (both may be mixed), by librdkafka's names.

    Raises `UsageError` with file and line: unreadable, an unknown name, a value that cannot be honoured (a JKS key store).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: not UTF-8 text (byte {error.start})") from None
    return _from_entries(parse_properties(text, str(path)), str(path))


def parse_x(arguments: Sequence[str]) -> Mapping[str, str]:
    """The ``-X key=value`` arguments; the last of one name wins. Raises `UsageError` for a malformed or unknown one."""
    found: dict[str, str] = {}
    for argument in arguments:
        key, separator, value = argument.partition("=")
        if not separator or not key.strip():
            raise UsageError(f"-X {argument}: expected key=value")
        found[key.strip()] = value

    def fail(key: str, why: str) -> UsageError:
        return UsageError(f"-X {key}: {why}")

    return {key: _checked(key, value, fail) for key, value in translate(found, fail).items()}


def _from_entries(entries: Sequence[Property], source: str) -> Mapping[str, str]:
    lines = {entry.key: entry.line for entry in entries}

    def fail(key: str, why: str) -> UsageError:
        return UsageError(f"{source}:{lines.get(key, 1)}: {key}: {why}")

    merged = {entry.key: entry.value.strip() for entry in entries}
    return {key: _checked(key, value, fail) for key, value in translate(merged, fail).items()}


def _checked(key: str, value: str, fail: Fail) -> str:
    """The value in the spelling that both clients read; raises for an unknown name or a bad value."""
    if key not in KNOWN_PROPERTIES:
        raise fail(key, f"no such property{did_you_mean(key, KNOWN_PROPERTIES)}")
    if key == "security.protocol":
        if value.upper() not in SECURITY_PROTOCOLS:
            raise fail(key, f"'{value}' is none of {', '.join(SECURITY_PROTOCOLS)}")
        return value.upper()
    if key in ("sasl.mechanism", "sasl.mechanisms"):
        return value.upper()
    if key.endswith((".ms", ".bytes")) and not re.fullmatch(r"\s*-?[0-9]+(\.[0-9]+)?\s*", value):
        raise fail(key, f"'{value}' is not a number")
    if key == "enable.ssl.certificate.verification":
        if value.lower() not in _BOOLEANS:
            raise fail(key, f"'{value}' is neither true nor false")
        return _BOOLEANS[value.lower()]
    return value
