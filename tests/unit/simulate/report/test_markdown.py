"""The summary of a pull request."""

from __future__ import annotations

from dataclasses import replace

from kgctl.simulate.report.text import markdown_text
from tests.support.simulate.outcomes import failing, outcome


def test_failing_run_shows_table_verdicts_and_replay() -> None:
    assert (
        markdown_text(failing())
        == """\
### ❌ tiny

Who waits for a restart?

|  | eager | cooperative |  |
| --- | --: | --: | --- |
| rebalances | 2 | 2 |  |
| unavailable p\\*s | 7,689 | 2.2 | partition-seconds without a consumer |
| longest gap | 3.2s | 3.2s | one partition, nobody |
| partitions moved | 12 | 4 | lower bound 4 |
| moves\\_min | 4 | 4 |  |
| collateral p\\*s | 6,400 | 0 | of partitions that did not move |

|  | expectation | observed |
| --- | --- | --- |
| ✅ | <code>cooperative.collateral == 0</code> | 0 (eager 6,400) |
| ✅ | <code>max_gap &lt; 15s</code> | 3.2s |
| ✅ | <code>cooperative: max_gap &lt; 3s</code> | 2.5s |
| ❌ | <code>eager: max_gap &lt; 3s</code> | observed 3.2s with seed 2 (of orders-0) |
| ⚠️ | <code>eager: moves &lt;= moves_min &#124; spread &gt; 1</code> | observed 12 with seed 2 |

Replay:

```console
kgctl simulate run tiny.yaml --variant eager --seed 2 --check 'max_gap < 3s'   # kgctl 0.5.0, digest 9f3a61c0
```

<sub>kgctl 0.5.0, 3 seeds, worst shown, digest <code>9f3a61c09f3a61c0</code></sub>
"""
    )


def test_text_of_the_file_cannot_become_markup() -> None:
    text = markdown_text(replace(outcome(), scenario="a|b", question="<img src=x>\n# `x` [y](z)"))

    assert text.startswith("### ✅ a\\|b\n\n&lt;img src=x> \\# \\`x\\` \\[y\\](z)\n\n")
