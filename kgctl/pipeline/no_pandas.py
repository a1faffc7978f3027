"""pyarrow without pandas, which it would import, in processes that convert nothing to it."""

from __future__ import annotations

import importlib.abc
import os
import sys

from kgctl.extras import is_there


def leave_pandas_out() -> None:
    """Have pyarrow do without pandas for as long as this process lives; nothing happens where pandas is there already.

    pyarrow imports pandas, which takes as long as all the rest of a short command, when it is first handed a list or asked for a
    number, to see whether pandas made it. It asks once: told then that there is none, it goes on. For processes of kgctl's own
    that convert nothing to pandas, not for those of other people's programs.
    """
    if "pandas" in sys.modules or not is_there("pyarrow"):
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts threads for linear algebra, of which there is none
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


class _NoPandas(importlib.abc.MetaPathFinder):
    """An import finder that hides pandas."""

    def find_spec(self, fullname: str, *_: object) -> None:
        """Raise `ModuleNotFoundError` for pandas; look for nothing else."""
        if fullname == "pandas":
            raise ModuleNotFoundError("left out", name=fullname)
