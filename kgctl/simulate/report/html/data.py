"""The drawn data of a page, as small as JSON lets it be: names once, stretches of time as rows of numbers.

``page.js`` makes records of it for the variant that is being looked at.
"""

from __future__ import annotations

from typing import Any

from kgctl.simulate.report.lanes import natural, worst_lanes
from kgctl.simulate.report.view import Outcome, Picture

MOST_LANES = 240
"""More than that cannot be told apart on a screen, and a browser is slow with them."""


def page_data(outcome: Outcome) -> dict[str, Any]:
    """``{"variants": {name: picture}}``, only of variants that have one."""
    pictures = {name: each.picture for name, each in outcome.variants.items() if each.picture is not None}
    return {"variants": {name: _picture(picture) for name, picture in pictures.items()}}


def _picture(picture: Picture) -> dict[str, Any]:
    lanes = worst_lanes(picture, MOST_LANES)
    owners = sorted({owner for lane in lanes for each in lane.segments for owner in each.owners}, key=natural)
    causes = sorted({each.cause for lane in lanes for each in lane.segments})
    owner_index = {owner: i for i, owner in enumerate(owners)}
    cause_index = {cause: i for i, cause in enumerate(causes)}
    rows = [
        [number, each.from_us, each.to_us, cause_index[each.cause], *(owner_index[owner] for owner in each.owners)]
        for number, lane in enumerate(lanes)
        for each in lane.segments
        if each.to_us > each.from_us
    ]
    return {
        "seed": picture.seed,
        "from": picture.from_us,
        "to": picture.to_us,
        "lanes": [lane.name for lane in lanes],
        "left_out": len(picture.lanes) - len(lanes),
        "owners": owners,
        "causes": causes,
        "segments": rows,
        "marks": [[mark.at_us, mark.text] for mark in picture.marks],
        "lag": [{"topic": series.topic, "points": [list(point) for point in series.points]} for series in picture.lag],
        "replicas": [
            {"what": f"{each.members}, {what}", "points": [list(point) for point in points]}
            for each in picture.replicas
            for what, points in (("wanted", each.wanted), ("running", each.running))
        ],
    }
