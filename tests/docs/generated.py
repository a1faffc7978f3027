"""The tables and diagrams of README.md and the manual that are made from the code's own tables."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kgctl.cli.app import run
from kgctl.cli.environment import Environment
from tests.cli.keys import shown_by
from tests.docs.reference import REFERENCE
from tests.repo.project import ROOT

if TYPE_CHECKING:
    from kgctl.cli.report import Column


def _table(head: str, rows: str) -> str:
    """A table of Markdown whose columns are named by ``head``."""
    return f"{head}\n{'|---' * (head.count('|') - 1)}|\n{rows}"


def _commands() -> str:
    from kgctl.cli.registry import COMMANDS

    rows = "".join(f"| `kgctl {spec.path}` | {spec.summary} | {spec.page} |\n" for spec in COMMANDS)
    return _table("| command | what it does | page |", rows)


def _exit_codes() -> str:
    from kgctl.cli.exit_codes import ExitCode

    return _table("| exit code | meaning |", "".join(f"| {code.value} | {code.meaning} |\n" for code in ExitCode))


def _flags() -> str:
    from kgctl.model.lag import Flag

    rows = "".join(f"| `{flag}` | {flag.meaning} | {'`-`' if flag.hides_lag else 'known'} |\n" for flag in Flag)
    return _table("| flag | meaning | lag |", rows)


def _error_codes() -> str:
    from kgctl.model.error_codes import ErrorCode

    rows = "".join(
        f"| {code.value} | `{code.name}` | {'yes' if code.is_retriable else ''} | {code.text} |\n" for code in ErrorCode
    )
    return _table("| code | name | retriable | what it means |", rows)


def _reference(name: str) -> Callable[[], str]:
    def made() -> str:
        from tests.docs.reference import page

        return page(name)

    return made


def _formats() -> str:
    from kgctl.cli.report import OutputFormat

    return _table("| `-o` | |", "".join(f"| `{output.value}` | {output.meaning} |\n" for output in OutputFormat))


def _keys() -> str:
    from kgctl.cli.registry import COMMANDS

    shown = {spec.path: found for spec in COMMANDS if (found := shown_by(spec)).tables}
    rows = "".join(
        f"| `{path}` | {'; '.join(', '.join(map(_key, table)) for table in found.tables)} |\n" for path, found in shown.items()
    )
    rows_of = {path: [column for table in found.tables for column in table] for path, found in shown.items()}
    summaries = {path: found.summary for path, found in shown.items() if found.summary}
    parts = [_table("| command | keys of its rows, of each table |", rows), _explained("key", rows_of)]
    parts += ["In `data`, in the place of rows (JSON and YAML):\n"]
    parts += [_explained("path", {path: found.document for path, found in shown.items() if found.document})]
    parts += ["In `summary`, beside `data`:\n", _explained("path", summaries)]
    return "\n".join(parts)


def _explained(head: str, columns_of: Mapping[str, Sequence[Column]]) -> str:
    """A line for each key; with the commands that have it, where it is not the same in all that have such a key."""
    said: dict[tuple[str, str, str], list[str]] = {}
    for path, columns in columns_of.items():
        for column in columns:
            what = f"{column.unit}: {column.meaning}" if column.unit else column.meaning
            said.setdefault((column.key, column.kind, what), []).append(path)
    several = {key for key, count in Counter(key for key, _, _ in said).items() if count > 1}
    lines = ""
    for (key, kind, meaning), paths in sorted(said.items()) if head == "key" else said.items():
        is_told = key in several or head != "key"
        where = f" ({', '.join(f'`{path}`' for path in dict.fromkeys(paths))})" if is_told else ""
        lines += f"| `{key}` | {kind} | {meaning}{where} |\n"
    return _table(f"| {head} | type | unit, and what it says |", lines)


def _key(column: Column) -> str:
    """The key, and the option without which it is not there."""
    return f"`{column.key}`" + (f" (`--{column.when.replace('_', '-')}`)" if column.when else "")


def _manual() -> str:
    from kgctl.cli.manual import CHAPTERS

    linked = {chapter: ", ".join(f"[{name}](kgctl/manual/{name}.md)" for name in names) for chapter, names in CHAPTERS.items()}
    return "".join(f"- **{chapter}**: {names}\n" for chapter, names in linked.items())


def _events() -> str:
    out = io.StringIO()
    run(["simulate", "schema"], Environment(stdout=out))
    kinds: list[dict[str, Any]] = json.loads(out.getvalue())["properties"]["events"]["items"]["anyOf"]
    common = set.intersection(*(set(kind["properties"]) for kind in kinds))
    rows = ""
    for kind in kinds:
        name = kind["title"]
        fields = {field: facts for field, facts in kind["properties"].items() if field not in common | {name}}
        shown = "; ".join(f"`{field}`: {facts.get('description', '')}".rstrip(": ") for field, facts in fields.items())
        target = kind["properties"][name]["description"].rstrip(".").lower().removeprefix("a ").removeprefix("an ")
        rows += f"| `{name}` | {target} | {kind['description']} | {shown} |\n"
    return _table("| event | its target | what happens | fields |", rows)


def _metrics() -> str:
    from kgctl.simulate.scenario.metric import metric_kinds

    rows = ""
    for name, kind in metric_kinds().items():
        rows += f"| `{name}` | {kind.unit.name} | {' '.join(dict.fromkeys(kind.filters))} | {kind.help} |\n"
    return _table("| metric | unit | filters | what it is |", rows)


def _troubles() -> str:
    from kgctl.simulate.scenario.vocabulary import TROUBLES

    rows = "".join(f"| `{kind.name}` | {kind.help} | {kind.metric and f'`{kind.metric}`'} |\n" for kind in TROUBLES.values())
    return _table("| allow | what fails a run | an expectation about |", rows)


def _watch_rules() -> str:
    from kgctl.pipeline.watch.rules import RULES

    return _table(
        "| rule | fires while |", "".join(f"| `{kind.form(name)}` | {kind.meaning} |\n" for name, kind in RULES.items())
    )


def _serve_differences() -> str:
    from kgctl.server.differences import DIFFERENCES

    rows = "".join(f"| {each.subject} | {each.here} | {each.kafka} |\n" for each in DIFFERENCES)
    return _table("| | here | Apache Kafka |", rows)


MOST_NAMED = 5


def _suites() -> str:
    from tests.interop import spring_kafka
    from tests.interop.suites import BY_HAND, RESULTS, SUITES

    left_out = {name: suite.left_out for name, suite in SUITES.items()} | {spring_kafka.NAME: spring_kafka.LEFT_OUT, **BY_HAND}
    rows = ""
    for name, found in json.loads(RESULTS.read_text()).items():
        kafka, kgctl = found["kafka"], found["kgctl"]
        tests = kafka["passed"] + len(kafka["failed"]) + len(kafka["skipped"])
        fail = {
            "on both": sorted({*kgctl["failed"]} & {*kafka["failed"]}),
            "here": sorted({*kgctl["failed"]} - {*kafka["failed"]}),
            "on Kafka": sorted({*kafka["failed"]} - {*kgctl["failed"]}),
        }
        told = "; ".join(f"{where} {_few(failed)}" for where, failed in fail.items() if failed)
        numbers = f"{tests} | {kafka['passed']} | {kgctl['passed']}"
        rows += f"| {name} {found['release']} | {numbers} | {told} | {left_out[name]} |\n"
    return _table("| suite | tests | pass on Apache Kafka 4.3.1 | pass on kgctl | fail | left out |", rows)


def _few(tests: Sequence[str]) -> str:
    return ", ".join(f"`{test.rpartition('/')[2]}`" for test in tests) if len(tests) <= MOST_NAMED else f"{len(tests)} tests"


def _serve_apis() -> str:
    from tests.docs.serve_apis import serve_apis

    return _table("| API | key | versions |", serve_apis())


def _broker_versions() -> str:
    from kgctl.coordinator.profile import switches

    facts = [entry.metadata for entry in switches()]
    return _table("| since | what | Kafka |", "".join(f"| {f['since']} | {f['meaning']} | {f['source']} |\n" for f in facts))


def _broker_releases() -> str:
    results: dict[str, dict[str, str]] = json.loads((ROOT / "tests" / "golden" / "brokers.json").read_text())
    what = next(iter(results.values()))
    rows = "".join(f"| {name} | {' | '.join(found[name] for found in results.values())} |\n" for name in what)
    return _table(f"| | {' | '.join(results)} |", rows)


def _states(name: str) -> str:
    from tests.docs import states

    made: Callable[[], str] = getattr(states, name)
    return made()


GENERATED: dict[str, Callable[[], str]] = {
    "commands": _commands,
    "exit-codes": _exit_codes,
    "error-codes": _error_codes,
    "flags": _flags,
    **{name: _reference(name) for name in REFERENCE},
    "formats": _formats,
    "keys": _keys,
    "manual": _manual,
    "events": _events,
    "metrics": _metrics,
    "troubles": _troubles,
    "watch-rules": _watch_rules,
    "serve-apis": _serve_apis,
    "serve-differences": _serve_differences,
    "suites": _suites,
    "broker-versions": _broker_versions,
    "broker-releases": _broker_releases,
    "classic-states": lambda: _states("classic_states"),
    "classic-responses": lambda: _table(
        "| state | what it means | Heartbeat | SyncGroup | OffsetCommit |", _states("classic_responses")
    ),
    "consumer-states": lambda: _states("consumer_states"),
    "consumer-when": lambda: _table("| state | when | what it means |", _states("consumer_when")),
    "share-states": lambda: _states("share_states"),
    "streams-states": lambda: _states("streams_states"),
    "member-states": lambda: _states("member_states"),
    "member-steps": lambda: _table(
        "| state | at the target | with a new subscription | Heartbeat | behind | SyncGroup | behind |", _states("member_steps")
    ),
}
"""Marker -> what belongs between its begin and its end."""
