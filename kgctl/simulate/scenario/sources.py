"""Where scenario files come from: the file system, stdin, and those that kgctl brings along."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TextIO

from kgctl.errors import NotFoundError, UsageError
from kgctl.simulate.scenario.patches import patched, written_out
from kgctl.simulate.scenario.recorded import LiveGroup, written_out_from
from kgctl.simulate.scenario.wording import did_you_mean, shown
from kgctl.yaml_files import SMALL, FileError, Tree, read_yaml

BUILTIN = "builtin:"
_DEEPEST = 8


def builtin_names() -> tuple[str, ...]:
    """The built-in scenarios, in the order of the alphabet."""
    folder = resources.files("kgctl.simulate") / "builtin"
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml")))


def builtin_text(name: str) -> str:
    """The file of a built-in scenario.

    Raises:
        NotFoundError: there is none of this name.
    """
    if name not in builtin_names():
        near = did_you_mean(name, builtin_names()) or "; `kgctl simulate list` shows those that there are"
        raise NotFoundError(f"there is no built-in scenario {name!r}{near}")
    return (resources.files("kgctl.simulate") / "builtin" / f"{name}.yaml").read_text(encoding="utf-8")


def read_source(name: str, stdin: TextIO | None = None, live: LiveGroup | None = None) -> Tree:
    """Return a scenario as a tree, with what it extends, replays and takes from a group merged in.

    ``name``: a file, ``-``, ``builtin:NAME``, or a built-in's bare name. ``live`` reads what ``group: {from: live:GROUP}`` names.

    Raises:
        NotFoundError: there is nothing of that name. FileError: it cannot be read. UsageError: it is no text.
    """
    return _with_bases(_read(name, stdin, live), name, Path(name).parent, (name,), live)


def _with_bases(tree: Tree, name: str, folder: Path, seen: tuple[str, ...], live: LiveGroup | None) -> Tree:
    if not isinstance(tree.data, dict) or "extends" not in tree.data:
        return tree
    base_name = tree.data["extends"]
    if not isinstance(base_name, str) or not base_name:
        raise tree.error(("extends",), f"must be builtin:NAME or a file, not {shown(base_name)}")
    real = base_name if base_name.startswith(BUILTIN) else str(folder / base_name)
    if real in seen:
        raise tree.error(("extends",), f"{name} extends itself: {' -> '.join((*seen, real))}")
    if len(seen) >= _DEEPEST:
        raise tree.error(("extends",), f"more than {_DEEPEST} files that extend one another")
    try:
        base = _read(real, None, live)
    except FileError:
        raise
    except (NotFoundError, UsageError) as error:
        raise tree.error(("extends",), error.message) from None
    if not isinstance(base.data, dict):
        raise tree.error(("extends",), f"{real} is no scenario: it is no mapping")
    base = _with_bases(base, real, Path(real).parent, (*seen, real), live)
    base.data, tree.data = written_out(base.data), written_out(tree.data)
    merged = patched(base, tree)
    merged.file = tree.file
    merged.locations[()] = tree.location(())
    merged.data.pop("extends", None)
    return merged


def _read(name: str, stdin: TextIO | None, live: LiveGroup | None) -> Tree:
    return written_out_from(_read_alone(name, stdin), Path("." if name == "-" else name).parent, live)


def _read_alone(name: str, stdin: TextIO | None) -> Tree:
    if name == "-" and stdin is not None:
        return _read_scenario(stdin.read(SMALL.characters + 1), "stdin")
    if name.startswith(BUILTIN):
        return _read_scenario(builtin_text(name.removeprefix(BUILTIN)), name)
    path = Path(name)
    if not path.exists() and stdin is not None and "/" not in name and name.removesuffix(".yaml") in builtin_names():
        return _read_scenario(builtin_text(name.removesuffix(".yaml")), f"{BUILTIN}{name.removesuffix('.yaml')}")
    return _read_scenario(_text_of(path), str(path))


def _read_scenario(text: str, source: str) -> Tree:
    tree = read_yaml(text, source)
    if tree.data is None:
        raise tree.error((), "the file is empty; `kgctl simulate init` writes a first scenario")
    return tree


def _text_of(path: Path) -> str:
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder")
        with path.open("rb") as file:
            content = file.read(SMALL.characters + 1)
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        hint = did_you_mean(path.name, builtin_names()) if "/" not in str(path) else ""
        raise NotFoundError(f"there is no file {str(path)!r}{hint and f', nor a built-in scenario{hint}'}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
