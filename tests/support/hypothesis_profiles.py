"""How hypothesis searches: the same examples each time where a change is judged, new ones on a developer's machine.

``KGCTL_HYPOTHESIS=exhaustive`` searches much longer. No example has a time limit: machines are slow now and then, and the test
as a whole has one.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("developer", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("exhaustive", deadline=None, max_examples=5_000)
settings.load_profile(os.environ.get("KGCTL_HYPOTHESIS") or ("ci" if os.environ.get("CI") == "true" else "developer"))
