"""Which lanes of a picture are worth drawing, and the order of the names in it."""

from __future__ import annotations

from kgctl.simulate.report.view import Lane, Picture, Segment


def worst_lanes(picture: Picture, most: int) -> list[Lane]:
    """All lanes; of more than ``most`` those that were longest without a consumer, in their order."""
    if len(picture.lanes) <= most:
        return list(picture.lanes)
    places = sorted(range(len(picture.lanes)), key=lambda i: (-_nobody_us(picture.lanes[i], picture), i))
    return [picture.lanes[place] for place in sorted(places[:most])]


def _nobody_us(lane: Lane, picture: Picture) -> int:
    return sum(overlap_us(each, picture.from_us, picture.to_us) for each in lane.segments if not each.owners)


def overlap_us(segment: Segment, from_us: int, to_us: int) -> int:
    """How much of a stretch of time the segment covers."""
    return max(0, min(segment.to_us, to_us) - max(segment.from_us, from_us))


def natural(name: str) -> tuple[str, int]:
    """A key for sorting: ``app-2`` before ``app-10``."""
    head, dash, tail = name.rpartition("-")
    return (head, int(tail)) if dash and tail.isdecimal() else (name, -1)
