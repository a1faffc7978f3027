"""Random messages of any API and version, made from the same plans that the codec uses."""

from __future__ import annotations

import random
import uuid
from typing import Any

from kgctl.serde.schemas import EntityPlan, FieldPlan

KNOWN_ERROR_CODES = range(134)


def random_values(plan: EntityPlan, rng: random.Random, depth: int = 0) -> dict[str, Any]:
    """Values for every field of the plan; arrays get shorter the deeper they stand."""
    return {field.name: random_value(field, rng, depth) for field in (*plan.fields, *plan.tagged)}


def random_value(field: FieldPlan, rng: random.Random, depth: int) -> Any:
    if field.nullable and rng.random() < 0.2:
        return None
    if field.is_array:
        return [_one(field, rng, depth + 1) for _ in range(rng.randrange(4 if depth < 3 else 2))]
    return _one(field, rng, depth)


_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def _one(field: FieldPlan, rng: random.Random, depth: int) -> Any:
    kind = field.kafka_type
    if field.entity is not None:
        return random_values(field.entity, rng, depth + 1)
    if kind == "int64" and field.name.endswith("_ms"):
        return rng.randrange(2**40)
    if kind in _BITS:
        return rng.randrange(-(2 ** _BITS[kind]), 2 ** _BITS[kind])
    if kind == "string":
        return "".join(rng.choice("abc-.ü") for _ in range(rng.choice((0, 1, 5, 126, 127, 128, 300))))
    if kind in ("bytes", "records"):
        return rng.randbytes(rng.choice((0, 1, 126, 127, 128, 20_000)))
    simple = {
        "bool": rng.random() < 0.5,
        "uint16": rng.randrange(2**16),
        "float64": rng.random(),
        "uuid": uuid.UUID(int=rng.getrandbits(128) | 1),
        "error_code": rng.choice(KNOWN_ERROR_CODES),
    }
    return simple[kind]
