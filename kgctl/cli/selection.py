"""Choosing groups: by name, by regular expression, or all of them; and asking before many are changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from kgctl.admin import GroupAdmin, GroupResults
from kgctl.cli.options import GroupArguments, GroupOptions, merged_groups
from kgctl.cli.parameters import flag, option
from kgctl.cli.session import Session
from kgctl.errors import KgctlError, NotFoundError, RefusedError, UsageError, did_you_mean, plural
from kgctl.model.groups import GroupListing, GroupState, GroupType
from kgctl.model.values import frozen_in_order

if TYPE_CHECKING:
    from kgctl.admin.topic_scopes import TopicScope

MatchOption = Annotated[str | None, option("REGEX", "Only groups whose id matches, anywhere unless anchored.", "--match")]
ExcludeOption = Annotated[str | None, option("REGEX", "Not the groups whose id matches.", "--exclude")]


@dataclass(frozen=True, eq=False, repr=False)
class NameFilter:
    """A block of options: which names pass, those that match and are not excluded.

    Raises:
        UsageError: empty, or not a regular expression.
    """

    match: MatchOption = None
    exclude: ExcludeOption = None

    def __post_init__(self) -> None:
        _ = self._patterns

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
        return _compiled("--match", self.match), _compiled("--exclude", self.exclude)

    def __call__(self, name: str) -> bool:
        match, exclude = self._patterns
        return (match is None or bool(match.search(name))) and (exclude is None or not exclude.search(name))

    def __bool__(self) -> bool:
        return any(self._patterns)


STATES = tuple(state.value for state in GroupState)
TYPES = tuple(kind.value for kind in GroupType)


TypeOption = Annotated[
    list[str] | None,
    option("TYPE,...", "Only classic, consumer, share or streams groups.", "--type", complete=TYPES),
]


def parse_types(given: Sequence[str] | None) -> tuple[GroupType, ...]:
    """The types of ``--type``. Raises UsageError: there is no such type."""
    return tuple(map(GroupType, parse_names("--type", given or (), TYPES)))


@dataclass(frozen=True, eq=False, repr=False)
class NamedGroups:
    """A block of options: which groups are meant, by name, by regular expression, or all, where there is one type only."""

    choosing: ClassVar[str] = "--all-groups, --match and --exclude"
    """The options that choose groups without naming them."""

    groups: GroupArguments = None
    group: GroupOptions = None
    all_groups: Annotated[bool, flag("--all-groups", "Every consumer group of the cluster.")] = False
    match: MatchOption = None
    exclude: ExcludeOption = None

    @cached_property
    def ids(self) -> list[str]:
        """Return the groups that are named. Raises `UsageError` for what can be no group's id."""
        return merged_groups(self.groups, self.group)

    @cached_property
    def names(self) -> NameFilter:
        """Return the filter of those that are not. Raises `UsageError`."""
        return NameFilter(self.match, self.exclude)

    @property
    def types(self) -> tuple[GroupType, ...]:
        """Return their types; none for consumer groups."""
        return ()

    @property
    def is_by_name(self) -> bool:
        """Return whether all are named."""
        return not self.all_groups and not self.names and not self.types

    def check(self) -> None:
        """Whether the command line says which groups are meant, in one way only.

        Raises:
            UsageError: it does not.
        """
        if self.ids and not self.is_by_name:
            raise UsageError(f"groups are named, so {self.choosing} have no place")
        if not self.ids and not self.all_groups and not self.names:
            raise UsageError("no group is named: give group ids, --match REGEX or --all-groups")

    def select(self, admin: GroupAdmin) -> Selection:
        """As `select_groups`."""
        return select_groups(admin, self.ids, self.names, self.types)


@dataclass(frozen=True, eq=False, repr=False)
class GroupChoice(NamedGroups):
    """As `NamedGroups`, of some types."""

    choosing: ClassVar[str] = "--all-groups, --match, --exclude and --type"

    all_groups: Annotated[bool, flag("--all-groups", "Every consumer group of the cluster, or every group of --type.")] = False
    type_: TypeOption = None

    @cached_property
    def types(self) -> tuple[GroupType, ...]:
        """Return them; none for consumer groups. Raises `UsageError`: there is no such type."""
        return parse_types(self.type_)


@dataclass(frozen=True, eq=False, repr=False)
class _AtMost(NamedGroups):
    """So many of them at most."""

    max_groups: Annotated[int | None, option("N", "Refuse to change more than N groups.", "--max-groups", min=0)] = None

    def select(self, admin: GroupAdmin) -> Selection:
        """As `NamedGroups`. Raises `RefusedError` where there are more than ``--max-groups`` allows."""
        chosen = super().select(admin)
        check_count(len(chosen.group_ids), self.max_groups)
        return chosen


@dataclass(frozen=True, eq=False, repr=False)
class MigratedGroups(_AtMost):
    """A block of options: which groups of ZooKeeper are copied, and how many at most."""


@dataclass(frozen=True, eq=False, repr=False)
class ChangedGroups(_AtMost, GroupChoice):
    """A block of options: which groups are changed, and how many at most."""


@dataclass(frozen=True, eq=False, repr=False)
class KindFilter:
    """A block of options: which states and types pass.

    Raises:
        UsageError: there is no such state or type.
    """

    state: Annotated[list[str] | None, option("STATE,...", "Only groups in one of these states.", complete=STATES)] = None
    type_: TypeOption = None

    def __post_init__(self) -> None:
        _ = self.states, self.types

    @cached_property
    def states(self) -> tuple[GroupState, ...]:
        return tuple(map(GroupState, parse_names("--state", self.state or (), STATES)))

    @cached_property
    def types(self) -> tuple[GroupType, ...]:
        return parse_types(self.type_)

    def __call__(self, listing: GroupListing) -> bool:
        return (not self.states or listing.state in self.states) and (not self.types or listing.type in self.types)

    def __bool__(self) -> bool:
        return bool(self.states or self.types)


def _compiled(option: str, text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    if not text:
        raise UsageError(f"{option} is empty (an unset variable?), and would match every group: give it a regular expression")
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{option} {text!r} is not a regular expression: {error}") from None


@frozen_in_order
class Selection:
    """The groups chosen, and the brokers that could not tell theirs."""

    group_ids: tuple[str, ...]
    errors: tuple[KgctlError, ...] = ()


def select_groups(admin: GroupAdmin, group_ids: Sequence[str], names: NameFilter, types: Sequence[GroupType] = ()) -> Selection:
    """The named groups, or else all consumer groups, those of ``types`` where there are any, that pass the filter, sorted.

    Raises:
        NotFoundError: no group passes.
    """
    if group_ids:
        return Selection(tuple(as_shown(admin, group_ids)))
    from kgctl.admin.group_view import is_consumer_group

    listed = admin.list_groups(types=types)
    errors = [error.to_exception() for error in listed.unreachable.values()]
    found = [group_id for group_id, listing in sorted(listed.values.items()) if types or is_consumer_group(listing)]
    chosen = [group_id for group_id in found if names(group_id)]
    if not chosen and not errors:
        what = " or ".join(kind.value for kind in types) or "consumer"
        raise NotFoundError("no group matches" if names else f"the cluster has no {what} groups")
    return Selection(tuple(chosen), tuple(errors))


def as_shown(admin: GroupAdmin, group_ids: Sequence[str]) -> Sequence[str]:
    """Return the ids, each that is the escaped form of a group's (as ``-o name`` and tables write control characters) as that;
    with its backslashes doubled it is a form of that group too.

    Raises:
        UsageError: it is that of several groups.
    """
    from kgctl.cli.render import printable

    if not any("\\" in group_id for group_id in group_ids):
        return group_ids
    shown: dict[str, list[str]] = {}
    doubled: dict[str, list[str]] = {}
    for group_id in admin.list_groups().values:
        shown.setdefault(printable(group_id), []).append(group_id)
        doubled.setdefault(printable(group_id.replace("\\", "\\\\")), []).append(group_id)
    return [_the_one(group_id, shown.get(group_id) or doubled.get(group_id) or [group_id]) for group_id in group_ids]


def _the_one(typed: str, meant: Sequence[str]) -> str:
    if len(meant) > 1:
        raise UsageError(
            f"{len(meant)} groups are shown as {typed}: name one by what `kgctl list groups -o name0` writes, "
            "or, where a backslash is part of its name, by two in its place"
        )
    return meant[0]


def failures(group_ids: Iterable[str], *found: GroupResults[Any]) -> list[KgctlError]:
    """What could not be learnt of these groups, an error each; then what is missing in what could."""
    failed = {group_id: error for results in found for group_id, error in results.errors.items()}
    flaws = [flaw for results in found for group_id in sorted(results.flaws) for flaw in results.flaws[group_id]]
    return [*(failed[each].to_exception(group=each) for each in group_ids if each in failed), *flaws]


def with_neighbours(admin: GroupAdmin, errors: Iterable[KgctlError]) -> tuple[KgctlError, ...]:
    """Return the errors, where a group that is not there has one beside it whose name is nearly that."""
    errors = tuple(errors)
    missing = [each for each in errors if isinstance(each, NotFoundError) and each.code == "GROUP_ID_NOT_FOUND" and each.group]
    if not missing:
        return errors
    try:
        known = list(admin.list_groups().values)
    except KgctlError:
        return errors
    return tuple(
        NotFoundError(error.message + _near(str(error.group), known), code=error.code, group=error.group)
        if error in missing
        else error
        for error in errors
    )


def _near(name: str, known: Sequence[str]) -> str:
    several = name.split(",")
    if len(several) > 1 and all(several):
        return f" (several groups have a space between them: {' '.join(several)})"
    if "*" in name:
        pattern = ".*".join(re.escape(part).replace("\\-", "-") for part in name.split("*"))
        return f" (a pattern is given as a regular expression: --match '^{pattern}$')"
    return did_you_mean(name, known, quoted=True)


def parse_names(option: str, given: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    """Read a repeatable option whose values are comma-separated names, letter case and separators aside.

    Raises:
        UsageError: an unknown name; lists the known ones.
    """
    by_plain = {_plain(name): name for name in known}
    found = []
    for word in (part.strip() for text in given for part in text.split(",")):
        if _plain(word) not in by_plain:
            raise UsageError(f"{option} {word!r} is unknown; known: {', '.join(known)}")
        found.append(by_plain[_plain(word)])
    return tuple(dict.fromkeys(found))


def parse_name(option: str, text: str, known: Sequence[str]) -> str:
    """Read an option that takes one name. Raises `UsageError` as `parse_names`, and for several."""
    names = parse_names(option, [text], known)
    if len(names) > 1:
        raise UsageError(f"{option} {text!r}: give one of {', '.join(names)}")
    return names[0]


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def check_topics(admin: GroupAdmin, known: Collection[str], scopes: Sequence[TopicScope]) -> None:
    """Tell a topic that is not there from one that groups, which have something on the ``known`` ones, have nothing on.

    Raises:
        NotFoundError: no group has anything on a topic, and there is none of its name that this user may see.
        AuthError: this user may not see it, there or not.
    """
    wanted = [scope.topic for scope in scopes if scope.topic not in known]
    if wanted and (missing := [topic for topic in wanted if topic not in admin.list_topics(wanted)]):
        from kgctl.admin.group_view import check_rights_on, missing_topic

        check_rights_on(admin, missing)
        raise missing_topic(admin, missing[0], "does not exist, or this user may not see it")


def nothing_on(scopes: Iterable[TopicScope], what: str, group_id: str | None = None) -> Iterator[NotFoundError]:
    """An error for each topic, or part of one, that was named and is not there."""
    for scope in scopes:
        yield NotFoundError(f"{what} on topic {str(scope)!r}", group=group_id, topic=scope.topic)


def confirm(
    session: Session, question: str, *, yes: bool, cluster: object = None, is_as_shown: Callable[[], bool] = lambda: True
) -> None:
    """Go on if the answer is yes: given at a terminal, or by ``--yes`` without asking. Where there is no terminal it is a no.

    ``is_as_shown`` says, where somebody was asked, whether the ``cluster`` still is as it was before the question.

    Raises:
        KgctlError: the answer is no, or none; nothing may be changed (exit code 1).
        RefusedError: somebody else has changed what the question was about.
    """
    if yes:
        return
    session.end_look()
    environment = session.environment
    if not environment.stdin.isatty():
        raise KgctlError(
            f"not confirmed; nothing was changed: {question} (no terminal to ask at; --yes answers yes)", code="DECLINED"
        )
    environment.stderr.write(f"{question} [y/N] ")
    environment.stderr.flush()
    if environment.stdin.readline().strip().lower() not in ("y", "yes"):
        raise KgctlError("not confirmed; nothing was changed", code="DECLINED")
    session.begin_look()
    if not is_as_shown():
        from kgctl.admin.offset_reset import CHANGED_MEANWHILE

        raise RefusedError(
            f"while the question stood, somebody else changed what it is about on {cluster}; this command changed nothing",
            code=CHANGED_MEANWHILE,
        )


def check_count(count: int, at_most: int | None) -> None:
    """Refuse to change more groups than ``--max-groups`` allows.

    Raises:
        RefusedError: there are more.
    """
    if at_most is not None and count > at_most:
        meant = f"{plural(count, 'group')} {'is' if count == 1 else 'are'} meant"
        raise RefusedError(f"{meant}, and --max-groups allows {at_most}; nothing was changed", code="TOO_MANY_GROUPS")


def told_lag(lags: Iterable[int | None], noun: str) -> str:
    """Return the lag of several things together, and of how many it is not known; no number where it is of none."""
    lags = list(lags)
    known = [lag for lag in lags if lag is not None]
    unknown = f"unknown for {plural(len(lags) - len(known), noun)}"
    parts = (f"{sum(known):,}" * bool(known or not lags), unknown * (len(known) < len(lags)))
    return f"total lag {', '.join(filter(None, parts))}"
