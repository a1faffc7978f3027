"""The charting library's JavaScript, out of its wheel."""

from __future__ import annotations

import functools

from kgctl.errors import UsageError

VEGA_LITE = "6.4"
"""The version that charts are written in."""


def require_library() -> None:
    """Raise `kgctl.errors.UsageError`, which says what to install, where the library is missing. Cheap: loads nothing else."""
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        raise UsageError("--html needs the extra `html`: pip install 'kgctl[html]'") from None


@functools.cache
def library_script() -> str:
    """What goes between ``<script>`` and ``</script>``: defines ``vegaEmbed``. Some 0.9 MB, made in about a second, once."""
    require_library()
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
