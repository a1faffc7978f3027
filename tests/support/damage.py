"""Harm to the files of a data folder, and what a start makes of it: ``python -m tests.support.damage --every 7 --seed 1``.

A start either answers all that was acknowledged, or says "damaged" with the way out; anything else is printed. One harm a time:
a flipped bit, a file cut off, emptied, deleted, doubled, exchanged for another one or for an older copy, a page of zeros or of
another place.
"""

from __future__ import annotations

import argparse
import logging
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kgctl.errors import DamagedError, KgctlError
from kgctl.model.groups import TopicPartition
from kgctl.serde.record_batch import Record, build_batch
from kgctl.server.background import BackgroundServer
from kgctl.server.security import Credentials
from kgctl.server.transactions import ProducerIdentity
from kgctl.storage.files import ADDRESS_FILE, LOCK_FILE
from kgctl.storage.folder import open_folder
from tests.support.storage import commit, group_record

PAGE = 4096
UNTOLD = (ADDRESS_FILE, LOCK_FILE)
"""Files without anything that was acknowledged."""
WAYS_OUT = ("--accept-loss", "--begin-anew")
PARTITION_DAMAGED = re.compile("(a batch of [a-z]+-[0-9]|entry [0-9]+ of the commit log|the record at offset .*) is damaged")
"""What is found when it is read, and keeps nobody from the rest: of the coordinator's records those that others have replaced."""
CONFIG = {"offsets.topic.num.partitions": "3"}
PASSWORDS = {"alice": "one", "bob": "two"}


class Harm(NamedTuple):
    """One thing done to one file of a copy of the folder."""

    name: str
    do: Callable[[Path], None]


def fill(path: Path, commits: int = 40) -> None:
    """Make a folder with all that a server keeps: groups, offsets, topics, records, transactions, settings, users."""
    with BackgroundServer(topics={"orders": 3, "clicks": 2}, data=path, config=CONFIG) as server:
        server.run(_produce(server))
    with open_folder(path, create=False) as folder:
        for number in range(commits):
            folder.record_log.append([commit(f"group-{number % 7}", number % 3, number, topic="orders", member="m")], number)
        folder.record_log.append([group_record("group-0", 4)], 50)
        folder.topics.set_log_start(TopicPartition("orders", 0), 2)
        Credentials(folder.documents).set_passwords(PASSWORDS)


async def _produce(server: BackgroundServer) -> None:
    services = server.server.services
    for number in range(12):
        partition = TopicPartition("orders", number % 3)
        batch = build_batch([Record(n, 1_000 + n, b"key", b"value" * 9) for n in range(3)])
        services.data.append(partition, batch, _header(batch), 0)
    services.group_configs.put("group-1", {"consumer.session.timeout.ms": "50000"})
    transactions = services.transactions
    transaction = transactions.init(ProducerIdentity("tx", -1, -1), 60_000)
    assert transaction is not None
    transactions.add(transaction, [TopicPartition("orders", 1)], services.runtime.clock())


def _header(batch: bytes) -> Any:
    from kgctl.serde.record_batch import parse_header

    return parse_header(batch)


def seen(path: Path) -> dict[str, Any]:
    """All that a server on the folder answers. Raises what its start raises, and `StorageError` where something is not read."""
    with BackgroundServer(data=path, config=CONFIG) as server:
        return server.run(_seen(server))


async def _seen(server: BackgroundServer) -> dict[str, Any]:
    services, folder = server.server.services, server.server.folder
    shard, data = services.runtime.core.shard, services.data
    topics = {name: (topic.topic_id, topic.partition_count) for name, topic in services.catalog.topics.items()}
    partitions = [TopicPartition(name, number) for name, (_, count) in topics.items() for number in range(count)]
    return {
        "groups": sorted(shard.groups),
        "offsets": {group: dict(shard.offsets.of_group(group)) for group in shard.offsets.group_ids()},
        "topics": topics,
        "bounds": {partition: data.bounds(partition) for partition in partitions},
        "records": {partition: data.read(partition, 0, 1 << 24) for partition in partitions},
        "times": {partition: data.offset_for_timestamp(partition, 1_001) for partition in partitions},
        "newest": {partition: data.offset_of_max_timestamp(partition) for partition in partitions},
        "commits": list(folder.commit_log.read()),
        "then": {group: folder.commit_log.offsets_at(group, 20) for group in shard.offsets.group_ids()},
        "settings": {name: dict(config) for name, config in services.group_configs.all().items()},
        "transactions": [
            (each.transactional_id, each.producer_id, each.epoch, each.timeout_ms, sorted(each.partitions), each.started_ms)
            for each in services.transactions
        ],
        "touched": sorted(services.transactions.touched),
        "users": {name: Credentials(folder.documents).is_right(name, word) for name, word in PASSWORDS.items()},
    }


def verdict(path: Path, expected: dict[str, Any]) -> str:
    """``whole``, ``damaged``, or what is wrong about the answer."""
    try:
        found = seen(path)
    except DamagedError as error:
        if PARTITION_DAMAGED.search(error.message) or all(way in error.message for way in WAYS_OUT):
            return "damaged"
        return f"no way out is named: {error.message}"
    except KgctlError as error:
        return f"{type(error).__name__}: {error.message}"
    except Exception as error:  # noqa: BLE001 - the fault that is looked for
        return f"a traceback: {error!r}"
    wrong = [name for name, value in expected.items() if found[name] != value]
    return f"other {', '.join(wrong)}" if wrong else "whole"


def harms(folder: Path, older: Path, other: Path, *, every: int, rng: random.Random) -> Iterator[Harm]:
    """Each harm to each file. ``older`` is an earlier copy of the folder, ``other`` another folder."""
    names = sorted(file.name for file in folder.iterdir() if file.is_file() and file.name not in UNTOLD)
    for name in names:
        size = (folder / name).stat().st_size
        yield Harm(f"delete {name}", partial(delete, name=name))
        yield Harm(f"double {name}", partial(_double, name=name))
        for where, source in (("older", older), ("other", other)):
            if (source / name).exists():
                yield Harm(f"{where} copy of {name}", partial(copy, source=source / name))
        for second in (each for each in names if each > name):
            yield Harm(f"exchange {name} and {second}", partial(_exchange, name=name, second=second))
        for cut in sorted({0, 1, size // 2, size - 1, *rng.sample(range(size), size // every // 8)}):
            yield Harm(f"cut {name} at {cut}", partial(_cut, name=name, at=cut))
        for position in range(rng.randrange(every), size, every):
            bit = 1 << rng.randrange(8)
            yield Harm(f"flip bit {bit} of byte {position} of {name}", partial(flip, name=name, position=position, bit=bit))
        for page in range(size // PAGE):
            yield Harm(f"zeros in page {page} of {name}", partial(_page, name=name, page=page, source=None))
            yield Harm(f"page {page} of {name} is the next", partial(_page, name=name, page=page, source=page + 1))


def delete(path: Path, name: str) -> None:
    """Remove a file."""
    (path / name).unlink()


def _double(path: Path, name: str) -> None:
    (path / name).write_bytes((path / name).read_bytes() * 2)


def _cut(path: Path, name: str, at: int) -> None:
    (path / name).write_bytes((path / name).read_bytes()[:at])


def copy(path: Path, source: Path) -> None:
    """Put another folder's file in its place."""
    shutil.copy(source, path / source.name)


def _exchange(path: Path, name: str, second: str) -> None:
    (path / name).rename(path / "between")
    (path / second).rename(path / name)
    (path / "between").rename(path / second)


def flip(path: Path, name: str, position: int, bit: int) -> None:
    """Alter a byte of a file."""
    data = bytearray((path / name).read_bytes())
    data[position] ^= bit
    (path / name).write_bytes(data)


def _page(path: Path, name: str, page: int, source: int | None) -> None:
    data = bytearray((path / name).read_bytes())
    new = bytes(PAGE) if source is None else bytes(data[source * PAGE :][:PAGE]).ljust(PAGE, b"\0")
    data[page * PAGE : (page + 1) * PAGE] = new
    (path / name).write_bytes(data)


class Folders(NamedTuple):
    """What `prepared` made: a folder that was closed or whose server was killed, an older copy of it, another folder."""

    folder: Path
    older: Path
    other: Path


def prepared(where: Path, *, killed: bool) -> Folders:
    """Folders to harm."""
    folders = Folders(where / "folder", where / "older", where / "other")
    fill(folders.other, 9)
    fill(where / "live")
    shutil.copytree(where / "live", folders.older)
    with BackgroundServer(data=where / "live", config=CONFIG) as server:
        server.run(_go_on(server))
        if killed:
            shutil.copytree(where / "live", folders.folder)
    if not killed:
        shutil.copytree(where / "live", folders.folder)
    shutil.rmtree(where / "live")
    return folders


async def _go_on(server: BackgroundServer) -> None:
    """Write to every file once more."""
    await _produce(server)
    services, folder = server.server.services, server.server.folder
    services.group_configs.put("group-2", {"consumer.session.timeout.ms": "51000"})
    folder.record_log.append([commit("group-3", 1, 999, topic="orders", member="m")], 60)
    services.catalog.create({"later": 1})
    Credentials(folder.documents).set_passwords({"alice": "one", "bob": "two", "carol": "three"})


def search(where: Path, *, killed: bool, every: int, seed: int, most: int | None = None) -> Counter[str]:
    """Do all harms, or ``most`` of them picked by ``seed``; each verdict that is a fault is printed. Returns the verdicts."""
    folders = prepared(where, killed=killed)
    expected = seen(shutil.copytree(folders.folder, where / "whole"))
    rng = random.Random(seed)
    todo = list(harms(*folders, every=every, rng=rng))
    tally: Counter[str] = Counter()
    for harm in todo if most is None else rng.sample(todo, min(most, len(todo))):
        harmed = shutil.copytree(folders.folder, where / "harmed")
        harm.do(harmed)
        found = verdict(harmed, expected)
        tally[found if found in ("whole", "damaged") else "FAULT"] += 1
        if found not in ("whole", "damaged"):
            print(f"{'killed' if killed else 'closed'}: {harm.name}: {found}", flush=True)
        with suppress(FileNotFoundError):
            shutil.rmtree(harmed)
    return tally


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.damage", description=__doc__)
    parser.add_argument("--every", type=int, default=61, help="flip a bit of each Nth byte")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, help="so many harms, picked by the seed")
    options = parser.parse_args()
    logging.disable()
    tally: Counter[str] = Counter()
    for killed in (False, True):
        with tempfile.TemporaryDirectory() as where:
            tally += search(Path(where), killed=killed, every=options.every, seed=options.seed, most=options.most)
    print(dict(tally))
    return 1 if tally["FAULT"] else 0


if __name__ == "__main__":
    sys.exit(main())
