"""The tree of commands that typer parses with, built from the registry; how shared options travel through it; ``--version``."""

from __future__ import annotations

import gc
import inspect
import platform
import re
import subprocess
from collections.abc import Set
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import kgctl
from kgctl.cli.options import ALL, flag_text, shared_parameters
from kgctl.cli.parameters import declared, flag, read_here, unfolded
from kgctl.cli.registry import COMMANDS, FAMILIES, CommandSpec
from kgctl.cli.report import OutputFormat
from kgctl.cli.session import DESTRUCTIVE, Session, session_of
from kgctl.errors import UsageError, did_you_mean

VERBOSE = {"-v", "--verbose"}
ARGUMENTS = "kgctl.arguments"
HELP_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

ROOT_HELP = """Administers Apache Kafka consumer groups, and rehearses what will happen to them.

Start with `kgctl demo`, or with `kgctl --bootstrap-server HOST:PORT list groups --lag`. Options of the cluster and -o
stand before or after a command's name."""


def _take_shared(ctx: Any) -> None:
    """Move the shared options out of the context's parameters, into the session."""
    session = session_of(ctx)
    given = {name: ctx.params.pop(name) for name in ALL if name in ctx.params}
    if given.get("properties"):
        given["properties"] = tuple(given["properties"])
    if given.get("output"):
        given["output"] = OutputFormat(given["output"])
    session.flags = session.flags.merged(given)
    session.command = command_name(ctx)


def command_name(ctx: Any) -> str:
    """The command that a context belongs to, by its own name even if an alias was typed; "" for kgctl itself."""
    path = getattr(ctx.command, "path", None)
    return str(path or ctx.command_path.partition(" ")[2])


def _manual_line(page: str) -> str:
    return f"Manual: kgctl manual {page}"


def _told(examples: str) -> str:
    first, *others = examples.strip().splitlines()
    return "\n".join(("Examples:\n\n\b", first, *others, "")) if others else f"Example: {first}"


def _write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Arguments, the command's own options, then the shared ones under a heading of their own."""
    records: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Cluster and output": []}
    for parameter in command.get_params(ctx):
        if (record := parameter.get_help_record(ctx)) is None:
            continue
        if parameter.param_type_name == "argument":
            heading = "Arguments"
        else:
            heading = "Cluster and output" if parameter.name in ALL else "Options"
        records[heading].append(record)
    for heading, rows in records.items():
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows, col_max=36)


def _has_value(parameter: Any) -> bool:
    return not getattr(parameter, "is_flag", False) and not getattr(parameter, "count", False)


def _once(parser: Any, ctx: Any) -> Any:
    """Return the parser as one that refuses what is given twice, of which it would take the last in silence: an option of one
    value, a flag in both its ways, a key of KEY=VALUE."""
    parse = parser.parse_args

    def parse_args(args: list[str]) -> Any:
        words = frozenset(args)
        values, rest, order = parse(args)
        options = [each for each in order if each.param_type_name == "option"]
        for each in dict.fromkeys(options):
            if why := _twice(each, options.count(each), values[each.name], words):
                raise UsageError(why)
        return values, rest, order

    if not ctx.resilient_parsing:
        parser.parse_args = parse_args
    return parser


def _twice(option: Any, times: int, given: Any, words: Set[str]) -> str:
    """Why this option, given so many times, is a mistake; "" where it is none."""
    name = max(option.opts, key=len)
    if option.multiple:
        keys = [str(each).partition("=")[0].strip() for each in given] if "=" in (option.metavar or "") else []
        key = next((each for each in keys if keys.count(each) > 1), None)
        return "" if key is None else f"{name}: {key!r} is given twice"
    if _has_value(option):
        return f"{name} is given twice, and takes one value" if times > 1 else ""
    other = next((each for each in option.secondary_opts if each in words and not words.isdisjoint(option.opts)), "")
    return f"{name} and {other} are given: choose one" if times > 1 and other else ""


class KgctlCommand(TyperCommand):
    """A command that takes the shared options its spec names, besides its own."""

    path = ""
    shared: tuple[str, ...] = ()

    def share(self, names: tuple[str, ...]) -> None:
        self.shared = names
        self.params.extend(shared_parameters(names))

    def make_parser(self, ctx: Any) -> Any:
        """Make a parser that takes each value once."""
        return _once(super().make_parser(ctx), ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave an option out that a Tab is to complete the value of: the parser would give up the rest of the line for it."""
        if ctx.resilient_parsing and args and any(args[-1] in param.opts and _has_value(param) for param in self.get_params(ctx)):
            args = args[:-1]
        read_here(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run it, with the shared options merged into the session."""
        _take_shared(ctx)
        flags = session_of(ctx).flags
        for name in flags.given():
            if name not in self.shared:
                raise UsageError(f"kgctl {session_of(ctx).command} takes no {flag_text(name)}")
            if getattr(flags, name) == "":  # as good as left out would mean another cluster: the environment's, the context's
                raise UsageError(f"{flag_text(name)} is empty (an unset variable?): leave it out, or give it a value")
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_options(self, ctx, formatter)


class LazyCommand(TyperCommand):
    """Stands for a command until it is called by name; has its name and its line in the help only."""

    def __init__(self, spec: CommandSpec, *, hidden: bool = False) -> None:
        super().__init__(spec.words[-1], help=spec.summary, short_help=spec.summary, hidden=hidden, rich_markup_mode=None)
        self.spec = spec

    @cached_property
    def real(self) -> KgctlCommand:
        """Import and return the real command."""
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        function, shown = self.spec.function, self.spec.shown
        app.command(
            cls=KgctlCommand,
            help="\n\n\b\n".join(filter(None, (inspect.getdoc(function), shown.more_help))),
            epilog=f"{_told(shown.examples)}\n\n{_manual_line(self.spec.page)}",
            context_settings={**HELP_SETTINGS, **shown.parsing},
        )(unfolded(function))
        command = typer.main.get_command(app)
        assert isinstance(command, KgctlCommand)
        command.name, command.path = self.spec.words[-1], self.spec.path
        command.share(self.spec.shared)
        return command

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the real command, which from here on takes this one's place."""
        if self.spec.long_lived:
            gc.enable()
        if parent is not None and isinstance(parent.obj, Session):
            parent.obj.command = self.spec.path
        return self.real.make_context(info_name, args, parent=parent, **extra)


class KgctlGroup(TyperGroup):
    """The root, or a family of commands such as ``list``."""

    @property
    def shown(self) -> list[str]:
        """Return the names of its commands, without aliases."""
        return [name for name, command in self.commands.items() if not command.hidden]

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command; a word that is none is told what to type, and never a command that destroys something."""
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            from kgctl.cli.habits import kgctl_line

            harmless = [name for name in self.shown if not name.startswith(DESTRUCTIVE)]
            hint = kgctl_line(command_name(ctx), args, self.shown)
            if not hint and not word.startswith(DESTRUCTIVE):
                hint = did_you_mean(word, harmless, at_most=2, quoted=True)
            path = f"kgctl {command_name(ctx)}".rstrip()
            raise UsageError(f"no such command {word!r}{hint} ({path} --help lists the commands)")
        return super().resolve_command(ctx, args)

    def make_parser(self, ctx: Any) -> Any:
        """Make a parser that takes each value once."""
        return _once(super().make_parser(ctx), ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Options of Kafka's own tool in place of a command are told what to type; ``--version`` is told of all words."""
        ctx.meta.setdefault(ARGUMENTS, list(args))
        is_none = bool(args) and args[0].startswith("-") and self.commands.keys().isdisjoint(args)
        if is_none:
            from kgctl.cli.habits import kgctl_line

            name = command_name(ctx)
            if hint := kgctl_line(name, args, self.shown):
                session_of(ctx).command = name
                what = f"kgctl {name}: a word is missing" if name else "that is a line for kafka-consumer-groups.sh"
                raise UsageError(f"{what}{hint}")
        read_here(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Merge the shared options given so far, then go on to the command."""
        _take_shared(ctx)
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        _write_options(self, ctx, formatter)


class CommandWithOthers(KgctlGroup):
    """A command whose name further words may follow: ``kgctl serve``, and ``kgctl serve status``."""

    def __init__(self, plain: LazyCommand) -> None:
        super().__init__(name=plain.name, help=plain.help, short_help=plain.short_help, rich_markup_mode=None)
        self.plain = plain

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of one of the others where the next word names it, else of the command itself."""
        if args and args[0] in self.commands:
            return super().make_context(info_name, args, parent=parent, **extra)
        return self.plain.make_context(info_name, args, parent=parent, **extra)


def _print_version(ctx: typer.Context, value: bool | None) -> None:
    if value:
        from kgctl import __version__

        typer.echo(f"kgctl {__version__}")
        if VERBOSE & set(ctx.meta.get(ARGUMENTS, ())):
            for name, text in installation().items():
                typer.echo(f"{name:<18} {text}")
        raise typer.Exit


def _declare_version(
    *,
    version: Annotated[
        bool, flag("--version", "Show the version and exit.", is_eager=True, callback=_print_version, expose_value=False)
    ] = False,
    verbose: Annotated[
        bool, flag("-v", "--verbose", "With --version: say what a report of a fault needs.", expose_value=False)
    ] = False,
) -> None:
    """Declares the options."""


def _family(name: str) -> KgctlGroup:
    page, summary = FAMILIES[name]
    return KgctlGroup(
        name=name,
        help=summary,
        epilog=_manual_line(page),
        no_args_is_help=True,
        params=shared_parameters(ALL),
        rich_markup_mode=None,
        context_settings=HELP_SETTINGS,
        subcommand_metavar="COMMAND ...",
    )


def _parent(root: KgctlGroup, name: str) -> KgctlGroup:
    """What has the second words of commands: a family, or a command of that name."""
    known = root.commands.get(name)
    if not isinstance(known, KgctlGroup):
        known = root.commands[name] = CommandWithOthers(known) if isinstance(known, LazyCommand) else _family(name)
    return known


@cache
def build_tree() -> KgctlGroup:
    """Return the root with every command in its place, made once a process: what belongs to one run is in its `Session`."""
    root = KgctlGroup(
        name="kgctl",
        help=ROOT_HELP,
        epilog="Manual: kgctl manual",
        params=[*shared_parameters(ALL), *declared(_declare_version)],
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings=HELP_SETTINGS,
        subcommand_metavar="COMMAND ...",
    )
    for spec in COMMANDS:
        parent = root
        if len(spec.words) == 2:
            parent = _parent(root, spec.words[0])
        parent.add_command(LazyCommand(spec))
        for alias in spec.aliases:
            parent.add_command(LazyCommand(spec, hidden=True), alias)
    return root


PACKAGE = Path(kgctl.__file__).parent
BUILT_FROM = PACKAGE / "commit.txt"
"""Written into a wheel or an sdist by .ci/build_hooks.py; a checkout has none."""


def installation() -> dict[str, str]:
    """Return what a report of a fault needs, name by name, libraries in the order of the project file."""
    return {"commit": commit(), "Python": platform.python_version(), "platform": platform.platform(), **libraries()}


def commit() -> str:
    """Return the commit that was built, or that the checkout stands at; ``unknown`` where neither can be told."""
    if BUILT_FROM.exists():
        return BUILT_FROM.read_text(encoding="utf-8").strip()
    if not (PACKAGE.parent / ".git").exists():
        return "unknown"
    command = ["git", "-C", str(PACKAGE.parent), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - words of our own
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def libraries() -> dict[str, str]:
    """Return the version of each library that kgctl asks for, with and without extras; ``-`` where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for wanted in _wanted():
        name = re.split(r"[^\w.-]", wanted, maxsplit=1)[0]
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "-"
    return found


def _wanted() -> list[str]:
    from importlib.metadata import PackageNotFoundError, requires

    try:
        return [each for each in requires("kgctl") or () if "extra == 'dev'" not in each.replace('"', "'")]
    except PackageNotFoundError:  # run from a folder, not installed
        return []
