"""Writes kgctl/serde/messages.json: the fields of Kafka's requests and responses, from the message files in its client jar.

    python3 .ci/message_tables.py kafka-clients-4.3.1.jar

The jar (Maven Central: org.apache.kafka:kafka-clients) is a zip; its common/message/*.json say which field a version has, and
Kafka generates its own codec from them. What concerns bytes is kept here, one message a line, prose is left out.
An API that kgctl is to speak gets its name into APIS. tests/wire/test_message_tables.py compares the file with the jar.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

APIS = (
    "Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch", "FindCoordinator", "JoinGroup", "Heartbeat",
    "LeaveGroup", "SyncGroup", "DescribeGroups", "ListGroups", "SaslHandshake", "ApiVersions", "CreateTopics", "DeleteTopics",
    "DeleteRecords", "InitProducerId", "OffsetForLeaderEpoch", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn",
    "TxnOffsetCommit", "DescribeConfigs", "SaslAuthenticate", "CreatePartitions", "DeleteGroups", "IncrementalAlterConfigs",
    "OffsetDelete", "DescribeCluster", "ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "AlterConfigs", "ListConfigResources",
    "DescribeAcls", "CreateAcls", "DeleteAcls", "AlterReplicaLogDirs", "DescribeLogDirs", "ElectLeaders",
    "AlterPartitionReassignments",
    "ListPartitionReassignments", "DescribeClientQuotas", "AlterClientQuotas", "DescribeUserScramCredentials",
    "AlterUserScramCredentials", "DescribeQuorum", "DescribeProducers", "DescribeTransactions", "ListTransactions",
    "DescribeTopicPartitions",
    "ShareGroupDescribe", "StreamsGroupDescribe", "StreamsGroupHeartbeat", "DescribeShareGroupOffsets", "AlterShareGroupOffsets",
    "DeleteShareGroupOffsets", "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge",
)  # fmt: skip
OUTPUT = Path(__file__).parents[1] / "kgctl/serde/messages.json"

KEPT = ("apiKey", "name", "validVersions", "flexibleVersions")
KEPT_OF_FIELDS = ("name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "default")


def field(name: str, kind: str, *fields: dict[str, Any]) -> dict[str, Any]:
    """Return one field of a message that has a single version."""
    return {"name": name, "type": kind, "versions": "0", **({"fields": list(fields)} if fields else {})}


def list_offsets_0(direction: str, *partition: dict[str, Any], first: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """Return ListOffsets 0, which brokers before 0.10.1 have and Kafka 4 has dropped from its files (KIP-896)."""
    topic = f"ListOffsetsTopic{direction}"
    topics = field("Topics", f"[]{topic}", field("Name", "string"), field("Partitions", f"[]{topic}Partition", *partition))
    return {
        "apiKey": 2,
        "name": f"ListOffsets{direction}",
        "validVersions": "0",
        "flexibleVersions": "none",
        "fields": [*first, topics],
    }


DROPPED_BY_KAFKA = (
    list_offsets_0(
        "Request",
        field("PartitionIndex", "int32"),
        field("Timestamp", "int64"),
        field("MaxNumOffsets", "int32"),
        first=(field("ReplicaId", "int32"),),
    ),
    list_offsets_0(
        "Response", field("PartitionIndex", "int32"), field("ErrorCode", "int16"), field("OldStyleOffsets", "[]int64")
    ),
)


def table_of(message: dict[str, Any]) -> dict[str, Any]:
    """Return what concerns bytes in one of Kafka's message files."""
    structures = {one["name"]: one["fields"] for one in message.get("commonStructs", ())}
    return {**{key: message[key] for key in KEPT}, "fields": fields_of(message["fields"], structures)}


def fields_of(fields: list[dict[str, Any]], structures: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the table's rows; a structure that stands in several places is written out in each."""
    rows = []
    for one in fields:
        row = {key: one[key] for key in KEPT_OF_FIELDS if key in one}
        inner = one.get("fields") or structures.get(one["type"].removeprefix("[]"))
        rows.append({**row, "fields": fields_of(inner, structures)} if inner else row)
    return rows


def tables(jar: Path) -> str:
    """Return the whole text of messages.json."""
    with zipfile.ZipFile(jar) as files:
        texts = [files.read(f"common/message/{api}{kind}.json").decode() for api in APIS for kind in ("Request", "Response")]
    messages = [table_of(json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))) for text in texts]
    lines = [json.dumps(message, separators=(",", ":")) for message in (*messages, *DROPPED_BY_KAFKA)]
    return "[\n" + ",\n".join(lines) + "\n]\n"


if __name__ == "__main__":
    OUTPUT.write_text(tables(Path(sys.argv[1])))
