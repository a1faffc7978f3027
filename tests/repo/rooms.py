"""How large each room of ``kgctl`` is, in lines of code, and how large it may be.

``python -m tests.repo.rooms`` prints the sizes.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass

from tests.repo.imports import modules
from tests.repo.project import python_files

SLACK = 40
"""A bound stands at most this far above its room: a cut lowers it in the same commit."""


@dataclass(frozen=True)
class Room:
    """What a folder of ``kgctl`` may have: ``lines`` after its last cut, and what was added since, each with its reason."""

    lines: int
    raised: tuple[tuple[int, str], ...] = ()

    @property
    def bound(self) -> int:
        return self.lines + sum(more for more, _ in self.raised)


TOP = "top"
"""The modules that lie in ``kgctl`` itself."""

ROOMS = {
    "simulate": Room(
        17_039,
        raised=(
            (39, "consumers beside sidecars, their arguments and references, KEDA's flags; what clients do not start with"),
            (17, "events that leave settings out; why a client did not start"),
            (150, "what is watched of records in quiet times, and between two events; commits of who falls behind"),
            (85, "what manifests say of autoscalers and settings, and a scenario does not"),
            (12, "classes whose names mean one thing are longer"),
            (40, "what two results rehearse: other events are no better or worse"),
            (107, "manifests with several groups, contradictions of theirs, sets that nobody rolls"),
            (42, "what two results rehearse: other events are no better or worse"),
            (50, "sets that are scaled in the middle of a rollout; deploys, evictions and failures that overlap"),
            (22, "pods that come after a deploy have its settings; a set means the pods that it is to have"),
            (38, "what a run did not have holds for nothing that watches it; what a limit has cut is green in no report"),
            (44, "what is special about one kind of group has a class"),
            (14, "a point of a grid that was not asked is none that holds; times have units"),
            (688, "applications of Kafka Streams, of both protocols: tasks, stores, restoration, metrics of theirs"),
            (2, "what runs take for granted of preStop and of failures"),
            (1_681, "share groups, KIP-932: consumers, the brokers' side, what became of each record, metrics, checks"),
            (26, "share groups are told by their own protocol, session and acknowledgements; what is tried has a file"),
            (26, "topics and pods that other variants and groups have are nothing of this one; means ask their when"),
            (
                164,
                "plays with aiokafka and kafka-python, and with several clients in one group, which calibration has no own for",
            ),
            (15, "what is committed and what is read twice where a client gives up in the middle of a batch"),
            (4, "a network that loses everything; the time to drain what has piled up since the first event"),
            (
                93,
                "a schema whose defaults a file may have; what is written, of what two results rehearse; events that never were",
            ),
            (29, "what manifests no longer say, and a scenario does; explain and rates take nothing for known that is not"),
            (3, "files of a run are checked by the module that all commands check theirs with"),
            (20, "what nobody changes is frozen or frozen_in_order, whose methods are made in time"),
            (61, "what a scenario asks, told by its own fields; events of one kind and target are told apart"),
            (38, "what manifests said once, and no longer say; what of them no scenario has"),
            (73, "events, expectations, faults and parameters that are there in vain"),
            (9, "what kafka-go still hands over when a generation has ended"),
            (11, "a pod is ready when it has made its consumer"),
            (4, "how often a consumer that has no partitions looks at what has come"),
            (22, "what explain tells of sessions, networks and hand-overs is recorded by the engine"),
            (2, "the last time there is and a share in words are said once, which is imported"),
            (249, "what no run can exceed, and expectations that hold or fail within it; what is let through is told everywhere"),
            (38, "what told a member that it has to join is recorded by the engine"),
            (14, "runs in which nothing happens; what held in some seeds, and when it did"),
            (14, "an expectation decides nothing about the warm-up"),
        ),
    ),
    "pipeline": Room(
        10_500,
        raised=(
            (75, "resets of an empty group as a chain; static members that close"),
            (60, "commits out of their log's range"),
            (398, "full builds in the memory of a step that go on when killed; a horizon for each partition of the log"),
            (14, "files of this machine are on disk before a commit names them"),
            (113, "rows chosen by the log's statistics; columns that say what they mean; the view of health; groups that wait"),
            (122, "objectives minute by minute, owners of groups"),
            (200, "when groups will have caught up, tried on their history"),
            (4, "what is known of a series that begins behind a step's horizon is for a later one"),
            (43, "share and streams groups are played back"),
            (2, "what Spark says of pandas 3 where no pandas is used"),
            (222, "collecting on Spark: a stream whose micro-batches are commits"),
            (296, "what happened as groups fell behind, in reports and alerts"),
            (29, "until when a partition of the log is known, by its own end; leaders whose clocks are behind"),
            (186, "a project of dbt, a board of Grafana"),
            (5, "one page of metrics for several clusters"),
            (10, "classes whose names mean one thing are longer"),
            (1, "lines of owners that are no group's"),
            (36, "events that nobody collects, and groups that are none, are not known"),
            (3, "the first sample of a log's life by its number"),
            (36, "a live cluster collected on Spark from the command line"),
            (1, "two changes that landed at once"),
            (7, "records of streams groups are those that the coordinator writes"),
            (16, "minutes before the first collection; what a watch with an end could not tell"),
            (28, "what a collection on Spark waits for, tells and ends with, as one without Spark"),
            (22, "minutes of a group whose log is sampled no more are not good ones; holes in a collection"),
            (41, "what happened in a hole of a collection is not known to objectives and alerts either"),
            (2, "the state of a watch is not kept in -"),
            (145, "rows from before the last sampled window stay; what comes late goes back to an earlier state"),
            (14, "which tables a query in SQL asks"),
            (19, "what nobody changes is frozen or frozen_in_order, whose methods are made in time"),
            (28, "what follows a step of a build is known to it: samples ahead, and how old later records may be"),
            (31, "clusters without tables in SQL; columns of tables that are there may be null; metrics of what nobody collects"),
            (4, "sources that nothing was collected from"),
            (23, "samples of a slice's own topics alone, so many windows at a time as memory has room for"),
        ),
    ),
    "cli": Room(
        10_396,
        raised=(
            (20, "topics that were made anew since a plan or a change are others"),
            (34, "classes whose names mean one thing are longer"),
            (27, "two files in which other events happen are not one question"),
            (20, "a threshold that does not hold though the result cannot be written; lines of owners that are no group's"),
            (33, "compared seeds that a limit has left out; objectives of groups that were not there; unknown alerts"),
            (10, "expectations that no run of a sweep was asked; forecasts of groups that have no commit"),
            (31, "named topics that no group reads; groups of some partitions; members that nobody tells"),
            (36, "--execute of deletions; what only the deed has a use for is no dry run's"),
            (40, "records that are older than those before them; names of variables that are nearly right"),
            (40, "a live cluster collected on Spark from the command line"),
            (22, "topics that none of the groups has committed to; what came after a collection is not known to be nothing"),
            (3, "groups that cannot be described at present are not empty"),
            (12, "numbers of a fleet that nobody has measured are not 0; what happened in a hole of a collection is not known"),
            (4, "groups whose commits nobody can read; members of types that cannot be removed"),
            (13, "what coordinators refuse to delete, and what only they can tell, in previews too"),
            (9, "the same, of deletions and of members"),
            (5, "topics and partitions that peek was asked for and that have no commit"),
            (1, "plans know what is a share group"),
            (36, "what was named and is not there; options that had no effect, and - as a file's name"),
            (15, "options of one value that are given twice"),
            (10, "partitions that were not measured are not told to be in no trouble"),
            (15, "keys and paths that are given twice, and flags that are given both ways"),
            (7, "named groups that filters leave out, watches that judge nothing, and migrations into share groups, are told"),
            (16, "SQL over what was never built has no rows that could be taken for an answer"),
            (17, "what nobody changes is frozen or frozen_in_order, whose methods are made in time"),
            (34, "sweep and compare tell of events that never happened, and compare fails with what went wrong unasked"),
            (72, "undo files and logs that nobody can read are not none, and a plan is no undo file; hidden commits are told"),
            (17, "a user without a home; named topics whose commits are hidden are not compared"),
            (16, "a user without a home; named topics whose commits are hidden are not compared"),
            (40, "clusters that SQL asks; how far was collected, and what at the end; times that come twice; misspelt variables"),
            (4, "partitions without a record to show; groups that are of another type by now"),
            (7, "what is let through is told by compare, sweep, explain and annotations"),
            (8, "changes of one moment have an undo file each"),
        ),
    ),
    "admin": Room(
        5_380,
        raised=(
            (3, "callbacks of the old consumer's group: what they raise is told with its place"),
            (18, "so do functions that watch instances and owners"),
            (45, "flags of groups, in list and top"),
            (38, "what a change wrote, per partition"),
            (9, "a closed registry stays closed"),
            (31, "passwords in the clear; topics that are gone; times of a zone; how far a change is"),
            (135, "lost connections cost time: commits of its own, and changes that look and send again"),
            (38, "one(), raise_first() and readable results"),
            (41, "states and types of groups on old brokers; what they cannot do is said before it begins"),
            (7, "a socket whose handshake with ZooKeeper failed is closed"),
            (360, "share and streams groups: described, measured, reset, deleted and undone"),
            (16, "one time limit for all that a command asks"),
            (11, "wall clocks' times that are skipped, or come twice; how far a look is"),
            (19, "one time limit for all of a change that is lost or slow"),
            (5, "what is unmeasured, for the limits and for totals"),
            (36, "topics are deleted; an undo that cannot know what was acknowledged says so"),
            (9, "a change has what a look that went ill has left of the limit"),
            (4, "what only streams groups need is imported for them alone"),
            (7, "one time limit for groups in ZooKeeper, too"),
            (51, "groups that a broker leads and has not begun to load are not left out of a listing; verdicts that others hide"),
            (5, "rows of 100,000 partitions are made in three quarters of the time"),
            (26, "ids of topics, by every way to a cluster, in plans and undo files"),
            (9, "classes whose names mean one thing are longer"),
            (1, "the facts of settings stand in the model"),
            (5, "groups that are not deleted are shown as they are listed"),
            (6, "the state of share groups that are deleted in a data folder"),
            (10, "rows beside an offset outside its log are not planned"),
            (18, "what is named and not there, for each command that says so"),
            (6, "members that nobody can remove; what nobody could look at is unknown, neither done nor failed"),
            (75, "rights that a change will lack, so that previews fail as deeds do"),
            (3, "what a migration wrote and nobody could read back"),
            (15, "groups of another type by the name that a plan or an undo file has"),
            (1, "a broker that is not the coordinator is a time limit"),
            (27, "deleted groups that are there again, headers that no kgctl writes, what a tool may have done"),
            (3, "what nobody changes is frozen or frozen_in_order, whose methods are made in time"),
            (1, "groups that filters leave out of a sample"),
            (5, "topics that are named and hidden are not gone"),
            (2, "what no Python reads as JSON is told in words of ours, the same on each"),
            (1, "the last time there is and a share in words are said once, which is imported"),
            (15, "start offsets that Kafka takes away with others of their topic alone; commits that hide sums; signals"),
        ),
    ),
    "coordinator": Room(
        5_058,
        raised=(
            (3, "Kafka's own words for settings of groups"),
            (309, "broker versions: switches and older rules of 3.9 to 4.2"),
            (2, "classes whose names mean one thing are longer"),
            (43, "what share groups may lock and deliver, by the broker's settings and their own"),
            (12, "Kafka's own words for numbers of groups' settings"),
            (1_137, "share groups, KIP-932: members, targets, offsets, the state of their partitions"),
            (321, "topologies of streams groups, laid out on the topics of the cluster"),
            (1_137, "streams groups, KIP-1071: members, tasks and their processes, targets, endpoints, records"),
            (3, "settings that a version has, otherwise than by default"),
            (1, "a table that is too full grows with the next subtopology that gets a task, as Kafka's"),
            (2, "which timers are sessions stands beside them"),
            (1, "what nobody changes is frozen or frozen_in_order, whose methods are made in time"),
        ),
    ),
    "server": Room(
        4_548,
        raised=(
            (104, "heartbeats that a connection repeats are looked up"),
            (37, "commits are answered by a callback of their flush"),
            (22, "replicas that a client names are looked at"),
            (600, "settings of topics, brokers and clients' metrics are kept, checked, described and altered as Kafka's"),
            (61, "broker versions: APIs by version, group protocols that are off"),
            (13, "a clock and a dispatcher of a test's own"),
            (10, "metadata asked for by id with an empty name, a long list of names in pieces"),
            (100, "retention in time, compaction on demand; compacted topics refuse records without keys"),
            (48, "retention is told; an orphan whose parent died before it looked ends; all differences are listed"),
            (667, "an authorizer: rules, the decision, and who may do what at each API"),
            (722, "17 APIs more: where data lies, who leads, transactions, quotas, SCRAM; advertised addresses; node ids"),
            (75, "several listeners of a broker, each with its protocol, its settings and the address that clients are told"),
            (62, "requests without time, topics named twice, half a producer's identity: refused as by Kafka"),
            (22, "an operator has a right, too, where there is an authorizer"),
            (22, "partitions named twice count and are answered once, as by Kafka"),
            (21, "PLAIN's users are each listener's own, apart from SCRAM's"),
            (2, "what waits for a flush is told without abstract base classes"),
            (14, "topics whose names differ in '.' and '_' alone are refused, as by Kafka"),
            (7, "long lists of settings, transactions, users and folders are gone through in turns"),
            (10, "fetches wait for anything that has a name"),
            (19, "classes whose names mean one thing are longer"),
            (271, "what share coordinators keep: in memory, in its topic, durable when told"),
            (6, "calls for the state of share partitions are answered where none is kept"),
            (1_486, "share groups, KIP-932: sessions, records acquired and acknowledged, fetches that wait, offsets"),
            (1, "what share groups have acknowledged is flushed"),
            (12, "a share partition that fails is forgotten, and takes no other with it"),
            (4, "share fetches do not wait for what they acknowledge, as in Kafka"),
            (5, "what a waiting fetch gets when several locks end"),
            (335, "streams groups, KIP-1071: heartbeats, descriptions, rights, topics that are made beside them"),
            (9, "what nobody changes is frozen or frozen_in_order, whose methods are made in time"),
        ),
    ),
    "storage": Room(
        2_605,
        raised=(
            (8, "settings.json; times that are too early"),
            (5, "a database that cannot be used is closed"),
            (9, "how large a partition is; quotas.json"),
            (1, "acls.json"),
            (110, "a log cleaner, and batches that are written anew at their places"),
            (16, "classes whose names mean one thing are longer"),
            (6, "what share groups have acknowledged is flushed"),
            (1, "what nobody changes is frozen or frozen_in_order, whose methods are made in time"),
            (10, "compaction that meets a damaged record says so"),
        ),
    ),
    "member": Room(
        2_751,
        raised=(
            (18, "what an assignor leaves to nobody"),
            (36, "whose thread joins, and whose poll() calls back"),
            (7, "what libraries are called that are made with a client"),
            (27, "librdkafka commits what it gives up as it gives it up"),
            (10, "librdkafka's beats go on over generations, and its poll() runs one callback at a time"),
            (2, "kafka-go collects commits, and makes them as a generation ends"),
            (13, "clients that do not start with settings of the other protocol"),
            (104, "members of share groups"),
            (6, "classes whose names mean one thing are longer"),
            (293, "stream threads of Kafka Streams, classic and by the streams protocol, and what their leader tells them"),
            (6, "the reasons of a JoinGroup that the engine and explain go by stand where they are given"),
            (1, "what nobody changes is frozen or frozen_in_order, whose methods are made in time"),
            (1, "librdkafka's assignor is its own"),
            (2, "what kafka-go still hands over when a generation has ended"),
            (6, "how long it takes to make a consumer, by client"),
        ),
    ),
    "assignors": Room(
        2_013,
        raised=(
            (95, "the border to assignors of the user's own, checked wherever they run"),
            (222, "the order of targets comes from the coordinator; the simple assignor, with Java's maps"),
            (252, "tasks of streams groups: the sticky task assignor, and Java's PriorityQueue"),
            (197, "who gets the tasks of a Kafka Streams application (HighAvailabilityTaskAssignor)"),
            (472, "Kafka Streams in classic groups: the leader's assignor, threads, user data of 11 versions"),
            (73, "copies of Kafka Streams' states on instances with other client tags"),
            (1, "what nobody changes is frozen or frozen_in_order, whose methods are made in time"),
            (213, "librdkafka's own cooperative-sticky, in whose orders partitions move otherwise than in Kafka's"),
        ),
    ),
    "serde": Room(
        1_537,
        raised=(
            (8, "batches that the log stamps"),
            (34, "large messages are read in half of the time"),
            (26, "the topics of a group, as brokers before 4.1 record them"),
            (4, "CRC-32C by its type, once"),
            (12, "a batch with some of its records, and when its tombstones may go"),
            (204, "records of share and streams groups, for the history"),
            (6, "what such a record is has a type of its own: they were no records of the coordinator's"),
            (12, "what a member's bytes are told as: said in two backends of admin before"),
            (97, "records of the state of share groups"),
            (80, "records of share groups, to be written as well"),
            (70, "records of streams groups, to be written as well"),
        ),
    ),
    "group": Room(
        1_209,
        raised=(
            (33, "a member that fails leaves, and says whose code failed"),
            (60, "commit_async; what is dropped says so; a member that fails leaves, and says whose code failed"),
            (4, "two members that ask leaders at the same time share a line"),
            (12, "a commit that hears before its member that the group has gone on is tried again"),
            (640, "AsyncConsumerGroup: driver, lines and commits in an event loop; records, in batches that are committed"),
            (19, "what a function raised is raised where the group's block ends"),
        ),
    ),
    "wire": Room(
        1_189,
        raised=(
            (1, "time that is up is noticed before a socket is made"),
            (93, "lost connections cost time: one way of asking, with its waits"),
            (11, "which Kafka a request needs"),
            (6, "requests about share and streams groups"),
            (6, "connections that are being opened when all are closed"),
            (6, "calls that have a limit together"),
            (190, "a connection and a cluster for coroutines, by the same greeting"),
            (5, "how far a question is"),
            (28, "tokens that a program's function makes, in a thread where an event loop waits"),
            (24, "calls of one limit know what they met with, and who was silent"),
            (40, "token makers that are coroutines, awaited in the loop that waits for them"),
            (2, "a limit says how long it is, for ZooKeeper too"),
            (38, "how changes of groups are asked for, and topics of requests and answers are written and read, for all rooms"),
            (1, "what nobody changes is frozen or frozen_in_order, whose methods are made in time"),
        ),
    ),
    "model": Room(
        926,
        raised=(
            (9, "a record of a topic"),
            (42, "what a lag is, said once"),
            (22, "partitions by plain tuples"),
            (55, "start offsets; topologies and their tasks"),
            (5, "records of the coordinator stand in a module of their own, which administration does not enter"),
            (4, "which partition a group is on, which all that look for groups read here"),
            (43, "what is kept of a share partition"),
            (28, "where a share group may begin"),
            (62, "records of share partitions' state; the facts of settings, for two coordinators"),
            (308, "share groups: requests, results, calls for the state of partitions, records"),
            (36, "Kafka's words for errors, which the server and the tool had"),
            (45, "topologies as members of streams groups declare them"),
            (3, "partitions of an answer are made in one way, for two rooms"),
            (186, "streams groups: requests, results, records"),
            (2, "what a list has of a described group"),
            (17, "what nobody changes is frozen or frozen_in_order, whose methods are made in time"),
            (28, "what rights are about, and which errors pass: moved here from three rooms"),
        ),
    ),
    "library": Room(
        1_031,
        raised=(
            (5, "a storage that fails is named with its class"),
            (48, "calls of an AsyncAdmin overlap, and one that is cancelled, or cannot connect, holds up no other"),
            (215, "borders to storages, makers of ids and clocks; settings and commit log of a coordinator"),
            (2, "what nobody changes is frozen or frozen_in_order, whose methods are made in time"),
        ),
    ),
    TOP: Room(
        657,
        raised=(
            (33, "UserCodeError and the place where it came from, or where what answered it is defined"),
            (12, "what an unreachable error knows; names as shells take them"),
            (75, "kgctl.results; bounds of the protocol's fields"),
            (31, "extras, in the words of pip, pipx and uv"),
            (88, "SCRAM, for both sides, in place of two packages"),
            (9, "the line for a missing extra names the environment, where no shell is in it, or uv"),
            (46, "functions of data frames with the columns of tables, a plan throughout; chosen rows; every table in SQL"),
            (4, "start offsets, tasks and topologies as results"),
            (1, "the extra testing"),
            (1, "the cluster that a stream of Spark collects from is that of all collections"),
            (1, "how many of something, said once"),
            (30, "kgctl.spark.collect; extras that bring others"),
            (13, "text files that users name are read in one place, for all rooms"),
            (3, "names of what is public"),
            (3, "keys of a password that a client has salted"),
            (11, "texts that hold bytes which are no UTF-8, and times below what a field holds, are refused"),
            (23, "numbers with leading zeros, and text that looks like one, said once for all that is written"),
            (1, "what takes a stream's micro-batches is told of its warehouse once"),
            (8, "an error says what is told of it: each thing that is wrong, in a line of its own"),
            (3, "the first few of many names, which five places told"),
            (53, "files that are left where users name them are checked and written by one module, for cli and simulate"),
            (13, "a user's home and own folders are found in one place, which says where there is none"),
        ),
    ),
    "testing": Room(
        198,
        raised=(
            (15, "Kafka's own bounds by default, quick ones apart"),
            (345, "records without a client, waiting for groups, faults that count, a clock that is moved, the marker"),
            (100, "rights, logins and TLS of a cluster for tests"),
            (44, "compact, expire, and settings of topics"),
            (25, "more listeners, and where clients are told that they are; what is no value is refused"),
            (10, "users of one listener"),
            (6, "nothing is written that no broker takes: too large, or into the brokers' own topics"),
            (14, "share groups with quick members"),
        ),
    ),
    "share": Room(
        267,
        raised=(
            (1_096, "a partition as a share group reads it: Kafka's SharePartition"),
            (17, "a group's settings read once for all"),
        ),
    ),
    "charts": Room(44, raised=((3, "pages of rehearsals and of the history read their charts in one place"),)),
}

MOST_FILES = 599  # rules about expectations; rights; autoscalers; what explain tries; streams: 34; share groups: some 55

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def sizes() -> dict[str, int]:
    """Return the lines of code of each room."""
    found: Counter[str] = Counter()
    for path, text in python_files("kgctl"):
        _, room, *inside = path.split("/")
        found[room if inside else TOP] += code_lines(text)
    return dict(found)


def code_lines(text: str) -> int:
    """Return how many lines of a module are neither blank, nor a comment, nor part of a docstring."""
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            prose |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(number not in prose and bool(line.strip()) and not line.strip().startswith("#") for number, line in lines)


def judged(found: dict[str, int], rooms: dict[str, Room]) -> list[str]:
    """Return what is wrong with sizes, and what to do: rooms over their bound, bounds far above their room, rooms without one."""
    told = []
    for name in sorted({*found, *rooms}):
        lines, room = found.get(name, 0), rooms.get(name)
        if room is None:
            told.append(f"{name}: a new room of {lines} lines: name it in ROOMS")
        elif lines > room.bound:
            told.append(f"{name}: {lines} lines of code, {room.bound} at most: cut, or add (lines, reason) to its `raised`")
        elif lines < room.bound - SLACK:
            told.append(f"{name}: {lines} lines of code, and {room.bound} allowed: a cut lowers the bound, write Room({lines})")
    return told


if __name__ == "__main__":
    counted = sizes()
    print(f"{sum(counted.values())} lines of code, {len(modules())} files")
    for room_name, count in sorted(counted.items(), key=lambda each: -each[1]):
        print(f"{room_name:12} {count:6}  of {ROOMS[room_name].bound if room_name in ROOMS else '-'}")
