"""``kgctl migrate-offsets``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from kgctl.admin.offset_reset import ResetResult
from kgctl.admin.topic_scopes import parse_topic_scopes
from kgctl.cli.columns import BY_RESULT
from kgctl.cli.groups.changes import COLUMNS, DryRun, Execute, OffsetChange, check_deed
from kgctl.cli.groups.reset_offsets import Clamp
from kgctl.cli.groups.undo_files import Backup
from kgctl.cli.options import TopicOptions, Yes
from kgctl.cli.parameters import option
from kgctl.cli.report import Report, shows
from kgctl.cli.selection import MigratedGroups
from kgctl.cli.session import NamedCluster, Session
from kgctl.cli.settings import connection_settings
from kgctl.errors import Interrupted, KgctlError, UsageError, plural
from kgctl.model.groups import TopicPartition

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin
    from kgctl.admin.zookeeper.consumer import Migration

EXAMPLES = """
kgctl migrate-offsets --zookeeper zk1:2181/kafka --bootstrap-server broker1:9092 --group payments --to-group payments-2
kgctl migrate-offsets --zookeeper zk1:2181/kafka --bootstrap-server broker1:9092 --match '^pay' --execute
"""
HOLDER = "{group}"


@shows(COLUMNS, summary=BY_RESULT, examples=EXAMPLES)
def migrate_offsets(
    session: Session,
    *,
    groups: MigratedGroups,
    to_group: Annotated[
        str | None, option("NAME", "The group on Kafka; {group} stands for the old name, which is the default.")
    ] = None,
    topic: TopicOptions = None,
    clamp: Clamp = True,
    execute: Execute = False,
    dry_run: DryRun = False,
    backup: Backup,
    yes: Yes = False,
) -> Report:
    """Copy committed offsets of groups in ZooKeeper into groups on Kafka. A dry run, unless --execute is given.

    Needs --zookeeper, where the groups are, and --bootstrap-server, where they go. Refused while instances of the old group or
    members of the new one run. What was written is read back, and kgctl undo takes it away again. The old group is left as it is.
    """
    check_deed(execute=execute, dry_run=dry_run, yes=yes, backup=backup)
    groups.check()
    scopes = parse_topic_scopes(topic or ())
    if len(groups.ids) != 1:
        _check_holder(to_group)
    with _both(session) as (source, target, cluster):
        from kgctl.admin.zookeeper.consumer import plan_migration

        chosen = groups.select(source)
        targets = {name: (to_group or HOLDER).replace(HOLDER, name) for name in chosen.group_ids}

        def planned() -> Migration:
            return plan_migration(source, target, targets, scopes, clamp=clamp)

        migration = planned()
        migration = replace(migration, plan=replace(migration.plan, errors=(*chosen.errors, *migration.plan.errors)))
        change = OffsetChange(session, cluster, _remarks(migration, execute=execute), backup)
        if not execute:
            return change.show(migration.plan)
        again = None if groups.is_by_name else lambda: planned().for_execution()
        report = change.execute(target, migration.for_execution(), again, yes=yes)
        return _verified(source, target, migration, report)


def _check_holder(to_group: str | None) -> None:
    if to_group is not None and HOLDER not in to_group:
        raise UsageError(f"--to-group {to_group!r} is one group for several: write {HOLDER} where the old name belongs")


@contextmanager
def _both(session: Session) -> Iterator[tuple[GroupAdmin, GroupAdmin, NamedCluster]]:
    settings = connection_settings(session.flags, session.environment)
    addresses = (settings.bootstrap, *(settings.properties.get(name) for name in ("bootstrap.servers", "metadata.broker.list")))
    to = next((address for address in addresses if address), None)
    if settings.zookeeper is None or to is None:
        missing = "--bootstrap-server: where they go" if settings.zookeeper else "--zookeeper: where the groups are"
        raise UsageError(f"kgctl migrate-offsets needs {missing}")
    properties = {key: value for key, value in settings.properties.items() if key.startswith("zookeeper.")}
    only_zookeeper = replace(settings, bootstrap=None, properties=properties)
    config = ("--command-config", session.flags.command_config) if session.flags.command_config else ()
    with session.connected(settings, only_zookeeper, replace(settings, zookeeper=None)) as (source, target):
        yield source, target, NamedCluster(to, target.cluster_id(), ("--bootstrap-server", to, *config))


def _remarks(migration: Migration, *, execute: bool) -> Sequence[str]:
    described = filter(None, (group.description for group in migration.plan.groups))
    shared = [each.group_id for each in described if each.type.has_start_offsets]
    told = [f"Group {group_id!r} is a share group: its start offsets are set." for group_id in shared]
    if execute:
        return told
    return told + [
        f"Group {name!r} is active in ZooKeeper ({plural(count, 'instance')}): --execute is refused until it is stopped."
        for name, count in migration.active.items()
    ]


def _verified(source: GroupAdmin, target: GroupAdmin, migration: Migration, report: Report) -> Report:
    from kgctl.admin.zookeeper.consumer import not_read_back, verify_migration

    done: dict[str, list[TopicPartition]] = {}
    for row in report.rows:
        if row.result in (ResetResult.RESET, ResetResult.UNCHANGED):
            done.setdefault(row.group_id, []).append(row.partition)
    try:
        problems = verify_migration(source, target, migration, done)
    except (KgctlError, Interrupted) as error:  # the rows are told whatever becomes of the look behind them
        problems = [not_read_back(error.message if isinstance(error, KgctlError) else "interrupted")]
    if problems:
        return replace(report, errors=(*report.errors, *problems))
    count = sum(map(len, done.values()))
    told = f"Read back: {plural(count, 'partition')} of {plural(len(done), 'group')} as copied." if done else None
    return replace(report, notices=(*report.notices, told)) if told else report
