"""Rehearsals: what would Kafka do with this group?

The package itself can be called: ``kgctl.simulate("deploy.yaml", seed=1)`` is `kgctl.library.simulation.simulate`.
"""

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """This package, which is also the function of the public API that has its name."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from importlib import import_module  # by name: the library stands above this package

        return import_module("kgctl.library.simulation").simulate(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
