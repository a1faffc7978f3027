"""Lines of other tools, typed as they stand, are answered with kgctl's."""

from __future__ import annotations

import pytest

from tests.cli.harness import Cli


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("groups", "type: kgctl list groups"),
        ("groups --list", "type: kgctl kafka-consumer-groups --list ("),
        ("groups --describe --group g", "type: kgctl kafka-consumer-groups --describe --group g ("),
        ("get groups", "type: kgctl list groups"),
        ("describe payments", "type: kgctl describe group payments"),
        ("list payments", "type: kgctl list groups"),
        ("list consumer-groups", "type: kgctl list groups"),
        ("consumer-groups --list", "type: kgctl kafka-consumer-groups --list ("),
        ("--list", "type: kgctl kafka-consumer-groups --list"),
        ("--bootstrap-server a:1 --list", "type: kgctl kafka-consumer-groups --bootstrap-server a:1 --list"),
        ("rollback", "type: kgctl undo"),
        ("lst", "did you mean 'list'?"),
    ],
)
def test_line_of_another_tool(cli: Cli, line: str, told: str) -> None:
    ran = cli(line)
    assert (ran.code, told in ran.err, cli.settings) == (2, True, []), ran.err


RUNBOOK = [
    "--list",
    "--list --state",
    "--list --state Stable,Empty",
    "--list --type consumer",
    "--describe --group g1",
    "--describe --group=g1 --offsets",
    "--describe --group g1 --members --verbose",
    "--describe --all-groups --state",
    "--timeout 5000 --describe --group g1 --group g3",
    "--group g1 --reset-offsets --to-earliest --all-topics --execute",
    "--reset-offsets --group g1 --topic t1:0,1 --shift-by -10 --dry-run",
    "--reset-offsets --group g1 --topic t1 --to-latest --export",
    "--reset-offsets --group g1 --topic t1 --to-datetime 2023-12-31T00:00:00.000",
    "--reset-offsets --group g1 --topic t1 --by-duration PT1H",
    "--reset-offsets --group g1 --topic t1 --to-offset 5",
    "--reset-offsets --group g1 --all-topics --to-current",
    "--reset-offsets --all-groups --all-topics --to-earliest",
    "--delete --group g1 --group g3",
    "--delete-offsets --group g1 --topic t1:0",
]
"""Lines of kafka-consumer-groups.sh, without the address."""


@pytest.mark.parametrize("line", RUNBOOK)
def test_a_runbook_typed_as_it_stands(cli: Cli, line: str) -> None:
    """Without the tool's name, or with a path, it is told; with its name it is done."""
    whole = f"--bootstrap-server a:1 {line}"
    for program in ("", "./bin/kafka-consumer-groups "):
        ran = cli(f"{program}{whole}")
        assert (ran.code, f"type: kgctl kafka-consumer-groups {whole}" in ran.err, cli.settings) == (2, True, []), ran.err
    ran = cli(f"kafka-consumer-groups.sh {whole}")
    assert (ran.code, "failed due to" in ran.out, len(cli.settings)) == (0, False, 1), ran.out + ran.err


MISTAKES = {
    "describe --group g1": "type: kgctl describe group --group g1",
    "describe group -g g1": "did you mean --group?",
    "describe topic t1": "kgctl knows the topics of groups only",
    "list -o json": "type: kgctl list groups -o json",
    "list groups g1": "type: kgctl describe group g1",
    "help describe group": "type: kgctl --help",
    "describe group -dash": "a name that begins with - stands behind --",
    "describe group g1 -topic t1": "did you mean --topic?",
    "describe group g1 -t t1": "did you mean --topic?",
    "describe group g1 --json": "did you mean -o json?",
    "describe group g1 --fail-if-lag-over 1k": "'1k' is not a whole number",
    "list groups -b a:1": "did you mean --bootstrap-server?",
    "reset-offsets g1 --topic t1 --from-beginning": "did you mean --to-earliest?",
    "reset-offsets g1 --topic t1 --to-earliest --exec": "did you mean --execute?",
    "list groups --watch": "kgctl top watches groups",
    "describe group g1 --watch 5": "write --watch --interval 5s (or --group 5, if it is one)",
    "describe group g1 --watch 5m": "write --watch --interval 5m",
    "list-groups --lag": "type: kgctl list groups --lag",
    "describe_group g1": "type: kgctl describe group g1",
    "reset-offsets g1 --topic t1 --to-offset latest": "'latest' is not a whole number",
    "reset-offsets g1 --topic t1,t2 --to-latest": "repeat the option: --topic t1 --topic t2",
    "reset-offsets g1 --topic t1 --to-datetime 2h": "did you mean '2h ago'?",
    "reset-offsets g1 --topic t1 --to-datetime 10:00": "did you mean 'today 10:00'?",
    "reset-offsets g1 --to-offsets t1=5": "write TOPIC:PARTITION=OFFSET, as in orders:0=5,1=10",
    "reset-offsets g1 --to-offsets t1:0=5 --to-offsets t1:1=2,0=6": "--to-offsets: t1-0 is given twice",
    "reset-offsets g1 --to-offsets t1:0=-5": "write TOPIC:PARTITION=OFFSET",
    "reset-offsets --match g --to-offsets t1:0=5": "--to-offsets needs groups by name",
    "reset-offsets g1 --to-offsets t1:0=5 --topic t1": "the offsets say which partitions are meant",
    "context set stage": "unknown context 'stage'",
    "delete-groups --match . --exclude g1 --exclude g2 --yes": "--exclude is given twice, and takes one value",
    "reset-offsets g1 --all-topics --to-offset 3 --to-offset=5": "--to-offset is given twice, and takes one value",
    "list groups -o json -o csv": "--output is given twice, and takes one value",
    "-o json -o csv list groups": "--output is given twice, and takes one value",
    "-X client.id=a -X client.id=b list groups": "-X: 'client.id' is given twice",
    "list groups -X client.id=a -X client.id=a": "-X: 'client.id' is given twice",
    "simulate run rolling-restart --set warmup=60s --set warmup=70s": "--set: 'warmup' is given twice",
    "simulate sweep rolling-restart --set warmup=60s --set warmup=70s": "--set: 'warmup' is given twice",
    "reset-offsets g1 --all-topics --to-latest --clamp --no-clamp": "--clamp and --no-clamp are given: choose one",
    "list groups --sort lag,name": "--sort 'lag,name': give one of lag, name",
    "describe group g1 --sort lag,partition": "--sort 'lag,partition': give one of lag, partition",
    "top --sort lag,drain": "--sort 'lag,drain': give one of lag, drain",
    "describe group g1 --lag-mode committed,read-committed": "give one of committed, read-committed",
    "list groups --sort=": "--sort '' is unknown",
    "describe group g1 --sort=": "--sort '' is unknown",
    "describe group g1 --lag-mode=": "--lag-mode '' is unknown",
    "simulate run rolling-restart --plays 3": "--plays is how often --against HOST:PORT plays; without it nothing is played",
    "simulate init --sample 3s": "it has a place beside --from-group only",
    "simulate shrink rolling-restart --variant eager --check cooperative.max_gap<1s": "cannot be asked: its variants are not run",
    "reset-offsets g1 --all-topics --to-latest --other-cluster": "has a place beside --from-file and --plan only",
    "reset-offsets g1 --all-topics --to-latest --export --summary": "--export has a form of its own: --summary has no place",
    "reset-offsets g1 --all-topics --to-latest --export -o json": "--export has a form of its own: -o json has no place",
    "reset-offsets g1 --all-topics --to-latest --plan-out -": "--plan-out -: stdout has the result; name a file",
    "reset-offsets g1 --all-topics --to-latest --execute --backup -": "--backup -: stdout has the result; name a file",
    "delete-groups g1 --yes --backup -": "--backup -: stdout has the result; name a file",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistake_is_told_what_was_meant(cli: Cli, line: str) -> None:
    ran = cli(line)
    assert (ran.code, MISTAKES[line] in ran.err, cli.settings) == (2, True, []), ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    "line",
    [
        "describe group {}",
        "reset-offsets {} --topic t1 --to-latest --execute",
        "delete-groups {} --yes",
        "delete-offsets {} --topic t1 --yes",
        "remove-members {} --all --yes",
    ],
)
def test_groups_that_are_not_there(cli: Cli, line: str) -> None:
    """A list with commas is told to have spaces; a name that is nearly a group's is told that group."""
    listed = cli(line.format("g1,g3"))
    assert (listed.code, "(several groups have a space between them: g1 g3)" in listed.err) == (4, True), listed.err
    pattern = cli(line.format("g-*x*"))
    assert (pattern.code, "--match '^g-.*x.*$')" in pattern.err) == (4, True), pattern.err
    near = cli(line.format("G2"))
    assert (near.code, "did you mean 'g2'?" in near.err) == (4, True), near.err


@pytest.mark.parametrize("line", ["reset-offsets g1 --topic T1 --to-latest --execute", "describe group g1 --topic t11"])
def test_a_topic_that_is_not_there(cli: Cli, line: str) -> None:
    ran = cli(line)
    assert (ran.code, "did you mean 't1'?" in ran.err) == (4, True), ran.err


@pytest.mark.parametrize("option", ["--match", "--exclude", "--match=.* --exclude"])
@pytest.mark.parametrize(
    "line",
    [
        "list groups",
        "describe group",
        "reset-offsets --all-topics --to-latest --execute --yes",
        "delete-groups --yes",
        "delete-offsets --topic t1 --yes",
        "remove-members --all --yes",
        "top --iterations 1",
    ],
)
def test_a_pattern_of_an_unset_variable_matches_nothing(cli: Cli, line: str, option: str) -> None:
    ran = cli.run([*line.split(), *option.split(), ""])
    assert (ran.code, "is empty (an unset variable?)" in ran.err, cli.settings) == (2, True, []), ran.err


@pytest.mark.parametrize(
    "line", ["delete-offsets g1 --all-topics", "delete-groups --all", "reset-offsets g1 --all", "delete-groups g1 --force"]
)
def test_nothing_that_widens_a_change_is_suggested(cli: Cli, line: str) -> None:
    ran = cli(line)
    assert (ran.code, "--all-" in ran.err.partition("did you mean")[2], "--yes" in ran.err) == (2, False, False), ran.err


@pytest.mark.parametrize("line", ["delete", "delete-group", "reset", "reset-offset", "remove", "delet-groups", "migrate"])
def test_nothing_destructive_is_suggested(cli: Cli, line: str) -> None:
    ran = cli(line)
    suggested = ran.err.partition("did you mean")[2] + ran.err.partition("type:")[2]
    assert (ran.code, [name for name in ("delete", "reset", "remove", "migrate") if name in suggested]) == (2, []), ran.err


def test_a_regular_expression_needs_no_cluster(cli: Cli) -> None:
    ran = cli("--bootstrap-server a:1 --validate-regex ^orders-(?!x)")
    assert (ran.code, "--validate-regex '^orders-(?!x)'" in ran.err) == (2, True), ran.err
    refused = cli.run(["validate-regex", "^orders-(?!x)"])
    assert (refused.code, refused.err) == (
        2,
        "kgctl: brokers refuse the regular expression '^orders-(?!x)': invalid or unsupported Perl syntax\n",
    )
    taken = cli.run(["validate-regex", "^orders-[a-z]+$", "--topic", "orders-eu", "--topic", "orders-2", "-o", "json"])
    assert [(row["topic"], row["matches"]) for row in taken.data] == [("orders-eu", True), ("orders-2", False)]


def test_kafkas_milliseconds_are_refused(cli: Cli) -> None:
    ran = cli("list groups --timeout 5000")
    told = "kgctl: --timeout 5000 counts seconds, unlike in Kafka's tools: write 5000ms, or 5000s if that is meant\n"
    assert (ran.code, ran.err) == (2, told)
    assert cli("list groups --timeout 5000ms").code == 0
