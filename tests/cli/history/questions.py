"""A question to the history for each command that answers one, and the keys of the rows that come back."""

from __future__ import annotations

QUESTIONS = {
    "history offsets": (
        "payments --at 2026-03-02T08:30:00Z",
        "group topic partition offset metadata leader_epoch committed_at exactness",
    ),
    "history rebalances": (
        "payments",
        "group type generation started stable duration_ms started_by members joined left cause inferred assignor leader "
        "members_joined members_left",
    ),
    "history lag": (
        "payments --at 2026-03-02T08:30:00Z",
        "group topic partition time committed_offset log_end_offset lag lag_ms status why kind",
    ),
    "history resets": ("payments", "group topic partition time until times kind offset_before offset_after records evidence"),
    "history report": ("--html report.html", "cluster group status rebalances rebalance_ms resets commits max_lag max_lag_ms"),
    "history forecast": (
        "payments --at 2026-03-02T08:30:00Z",
        "group topic lag reads_per_s writes_per_s catches_up in_ms earliest latest tried held why",
    ),
    "history slo": (
        "payments --within 3m --target 50 --from 2026-03-02T08:00:00Z --to 2026-03-02T09:00:00Z",
        "group owner team from to minutes good bad unknown share target left held",
    ),
    "history fleet": (
        "--at 2026-03-02T08:42:00Z",
        "cluster owner team groups members ok not_ok unmeasured total_lag max_lag_ms stalled_partitions past_end collected_to",
    ),
    "history health": (
        "payments --at 2026-03-02T08:30:00Z",
        "group window_start window_ms status members rebalances rebalance_ms commits total_lag max_lag max_lag_ms resets "
        "stalled_partitions past_end below_start",
    ),
}
