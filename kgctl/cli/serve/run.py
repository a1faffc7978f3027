"""``kgctl serve``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from kgctl.cli.parameters import flag, option
from kgctl.cli.report import shows
from kgctl.errors import UsageError
from kgctl.files import text_of
from kgctl.server.differences import listed

if TYPE_CHECKING:
    from kgctl.server.listeners import BrokerListener
    from kgctl.server.service import Server
    from kgctl.storage.files import OnDamage

Value = TypeVar("Value")

DEFAULT_LISTEN = "127.0.0.1:9092"
ANY_PORT = "127.0.0.1:0"
MAX_PARTITIONS = 100_000


Listen = Annotated[
    list[str] | None,
    option(
        "[NAME://]HOST:PORT",
        "Where to listen; port 0 picks a free one. SSL://, SASL_SSL://, ...; repeatable, for a listener a network.",
        show_default=DEFAULT_LISTEN,
    ),
]
AllowRemote = Annotated[bool, flag("--allow-remote", "Allow an address that other machines reach, without login or encryption.")]
BeginAnew = Annotated[bool, flag("--begin-anew", "Where the folder is damaged: put its files aside and begin with an empty one.")]
ImportLog = Annotated[
    str | None,
    option("PATH", "Begin with a log that Apache Kafka wrote: a copied __consumer_offsets-* folder, or a folder of them."),
]
BrokerVersion = Annotated[str | None, option("VERSION", "Answer as a broker of this version: 3.9, 4.0, 4.1, 4.2, 4.3.")]
Advertise = Annotated[
    list[str] | None,
    option(
        "[NAME://]HOST:PORT", "Where clients of that listener find it, if not where it listens: from a container, by a proxy."
    ),
]
ForTests = Annotated[
    bool, flag("--for-tests", "Print `export KAFKA_BOOTSTRAP_SERVERS=...`, pick a free port, end with the parent process.")
]
Acls = Annotated[
    list[str] | None,
    option("RULE", "An access rule, 'allow alice read topic:orders*'; repeatable. With one, what no rule allows is refused."),
]


@shows(more_help=listed(), examples="kgctl serve --listen 127.0.0.1:0 --topic orders:6 --data ./coordinator")
def serve(
    *,
    listen: Listen = None,
    allow_remote: AllowRemote = False,
    data: Annotated[str | None, option("DIR", "Keep everything in this folder; in memory without it.")] = None,
    begin_anew: BeginAnew = False,
    accept_loss: Annotated[bool, flag("--accept-loss", "Where the folder is damaged: go on with what can be read.")] = False,
    import_log: ImportLog = None,
    topic: Annotated[list[str] | None, option("NAME:PARTITIONS", "A topic to have; repeatable.")] = None,
    config: Annotated[list[str] | None, option("KEY=VALUE", "A broker config by Kafka's name; repeatable.")] = None,
    config_file: Annotated[str | None, option("FILE", "Broker configs from a .properties file, best for passwords.")] = None,
    metrics: Annotated[str | None, option("HOST:PORT", "Serve a page of metrics for Prometheus there.")] = None,
    brokers: Annotated[int, option("N", "Play a cluster of N brokers, each on a port of its own.", min=1, max=9)] = 1,
    broker_version: BrokerVersion = None,
    advertise: Advertise = None,
    for_tests: ForTests = False,
    acl: Acls = None,
    verbose: Annotated[bool, flag("--verbose", "Log each request to stderr.")] = False,
) -> int:
    """Run a group coordinator that Kafka clients talk to, without a broker.

    Prints `listening on HOST:PORT` once it answers, and a line for each further listener. SIGTERM and Ctrl-C end it, with all
    acknowledged writes on disk; SIGUSR1 writes statistics and the rebalances under way to stderr, as JSON. What a broker does
    otherwise is listed below, in `kgctl manual serve` with what a broker does instead, and in the log of `--verbose`.
    """
    from kgctl.coordinator.config import with_broker_version
    from kgctl.server.config import ServeOptions
    from kgctl.server.differences import AT_ONCE
    from kgctl.server.service import serve as run
    from kgctl.server.traffic import run_in_loop

    settings = _each_once("--config", [*read_config_file(config_file), *(parse_config(text) for text in config or ())])
    settings = with_broker_version(settings, broker_version, otherwise=AT_ONCE if for_tests else {})
    listeners = parse_listeners(
        listen or [ANY_PORT if for_tests else DEFAULT_LISTEN], advertise or (), settings, allow_remote=allow_remote
    )
    metrics_address = None if metrics is None else parse_address(metrics, allow_remote=allow_remote, flag="--metrics")
    options = ServeOptions(
        listeners=listeners,
        data=parse_path("--data", data),
        import_log=parse_path("--import-log", import_log),
        topics=_each_once("--topic", [parse_topic(text) for text in topic or ()]),
        config=settings,
        metrics=metrics_address,
        brokers=brokers,
        on_damage=parse_on_damage(data, begin_anew=begin_anew, accept_loss=accept_loss),
        verbose=verbose,
        acls=acl,
    )
    log_to_stderr(verbose=verbose)

    def announce(server: Server) -> None:
        for line in addresses_of(server, for_tests=for_tests):
            typer.echo(line)

    run_in_loop(run(options, announce, with_parent=for_tests))
    return 0


def addresses_of(server: Server, *, for_tests: bool) -> list[str]:
    """A line for each listener; the first is the one that was asked for first, and has no name."""
    first, *others = [listener.name for listener in server.options.listeners]
    addresses = {name: server.bootstrap_of(name) for name in others}
    if for_tests:
        more = [f"export KAFKA_BOOTSTRAP_SERVERS_{re.sub(r'[^A-Z0-9]', '_', name)}={each}" for name, each in addresses.items()]
        return [f"export KAFKA_BOOTSTRAP_SERVERS={server.bootstrap_of(first)}", *more]
    return [f"listening on {server.bootstrap_of(first)}", *(f"listening on {name}://{each}" for name, each in addresses.items())]


def parse_listeners(
    listen: Sequence[str], advertise: Sequence[str], settings: Mapping[str, str], *, allow_remote: bool
) -> list[BrokerListener]:
    """What ``--listen`` and ``--advertise`` say of each listener. Raises UsageError."""
    from kgctl.server.listeners import BrokerListener, listener_named, protocol_of, split_name
    from kgctl.server.security import split_security

    texts = [(name or "PLAINTEXT", address) for name, address in map(split_name, listen)]
    named = [BrokerListener(name, protocol_of(name, settings, "--listen")) for name, _ in texts]
    security, _ = split_security(named, settings)
    told: dict[str, tuple[str, int]] = {}
    for name, address in map(split_name, advertise):
        if not name and len(named) > 1:
            raise UsageError(f"--advertise: {address!r} of which listener? Write {named[0].name}://{address}")
        whose = listener_named(name, named).name if name else named[0].name
        if whose in told:
            raise UsageError(f"--advertise: {whose!r} is given twice")
        told[whose] = parse_address(address, allow_remote=True, flag="--advertise")
    found = []
    for listener, (_, address) in zip(named, texts, strict=True):
        reached = allow_remote or security[listener.name].keeps_strangers_out
        host, port = parse_address(address, allow_remote=reached)
        if listener.name not in told and _is_everywhere(host):
            raise UsageError(f"--listen: clients cannot connect to {host}: --advertise HOST:PORT says where they find it")
        found.append(replace(listener, host=host, port=port, advertised=told.get(listener.name)))
    return found


def read_config_file(path: str | None) -> list[tuple[str, str]]:
    """The settings of a .properties file. Raises UsageError."""
    from kgctl.admin.properties import parse_properties

    if path is None:
        return []
    return [(entry.key, entry.value) for entry in parse_properties(text_of(Path(path)), path)]


def parse_address(text: str, *, allow_remote: bool, flag: str = "--listen") -> tuple[str, int]:
    """``HOST:PORT``; IPv6 in brackets. Raises UsageError, also for an address that is not this machine's own, unless allowed."""
    from kgctl.server.listeners import parse_host_and_port

    host, port = parse_host_and_port(text, flag)
    if not allow_remote and not _is_loopback(host):
        reach = f"{flag}: other machines can reach {host}, and there is no access control"
        raise UsageError(f"{reach}; --allow-remote insists, SASL_SSL:// has one")
    return host, port


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_everywhere(host: str) -> bool:
    """Whether it is the address that stands for all of the machine's. Kafka refuses to advertise it."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def parse_topic(text: str) -> tuple[str, int]:
    """Parse ``NAME:PARTITIONS``. Raises UsageError."""
    from kgctl.model.groups import topic_name_problem

    name, colon, count = text.rpartition(":")
    if not colon or not count.isascii() or not count.isdigit():
        raise UsageError(f"--topic: {text!r} is not NAME:PARTITIONS")
    if not 1 <= int(count[:9]) <= MAX_PARTITIONS:
        raise UsageError(f"--topic: {text!r}: a topic has 1 to {MAX_PARTITIONS} partitions")
    if topic_name_problem(name):
        raise UsageError(f"--topic: {name!r} cannot be the name of a topic")
    return name, int(count)


def parse_config(text: str) -> tuple[str, str]:
    """Parse ``KEY=VALUE``. Raises UsageError."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"--config: {text!r} is not KEY=VALUE")
    return key.strip(), value.strip()


def parse_path(flag: str, text: str | None) -> Path | None:
    """A path, if one is given. Raises UsageError for an empty one, which would be the current folder."""
    if text == "":
        raise UsageError(f"{flag} is empty (an unset variable?): leave it out, or give it a value")
    return None if text is None else Path(text)


def parse_on_damage(data: str | None, *, begin_anew: bool, accept_loss: bool) -> OnDamage:
    """What to do with a damaged folder. Raises UsageError where both are wanted, or there is no folder."""
    from kgctl.storage.files import OnDamage

    if not (begin_anew or accept_loss):
        return OnDamage.REFUSE
    if data is None:
        raise UsageError(f"{'--begin-anew' if begin_anew else '--accept-loss'} is about a data folder: --data DIR is missing")
    if begin_anew and accept_loss:
        raise UsageError("--begin-anew and --accept-loss: choose one")
    return OnDamage.BEGIN_ANEW if begin_anew else OnDamage.ACCEPT_LOSS


def _each_once(flag: str, pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    """These by name. Raises UsageError for a name that is given twice: one of the two would be lost."""
    found: dict[str, Value] = {}
    for name, value in pairs:
        if name in found:
            raise UsageError(f"{flag}: {name!r} is given twice")
        found[name] = value
    return found


def log_to_stderr(*, verbose: bool) -> None:
    """Warnings, or with ``verbose`` a line for each request."""
    import logging

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.DEBUG if verbose else logging.WARNING)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
