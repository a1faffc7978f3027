"""A build, as the command line wants it: the engine opened when it is needed, and a bar on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from kgctl.cli.environment import Environment

if TYPE_CHECKING:
    from kgctl.pipeline.builds.run import BuildResult, Progress
    from kgctl.pipeline.engines import EngineOptions
    from kgctl.pipeline.spread import Engine
    from kgctl.pipeline.store.location import Location


def building(
    environment: Environment,
    path: Location,
    cluster: str | None,
    options: EngineOptions,
    *,
    is_rebuild: bool,
) -> BuildResult:
    """Build what was collected of ``cluster``, or of all clusters; ``options`` name the engine that is opened if one is needed.

    Raises:
        KgctlError: a package or Java is missing, there is no warehouse or no such cluster, somebody else is building.
    """
    from kgctl.pipeline.engines import EngineName, choose, open_engine
    from kgctl.pipeline.extras import require

    modules = ("pyarrow", "numpy", "deltalake")
    require("kgctl history build", *modules, *(["pyspark"] if options.name is EngineName.SPARK else []))
    from kgctl.pipeline.builds.run import build
    from kgctl.pipeline.store.warehouse import Warehouse

    warehouse = Warehouse.open(path)
    clusters = warehouse.clusters() if cluster is None else [warehouse.require_cluster(cluster)]
    if not clusters:
        warehouse.require_cluster(None)
    with ExitStack() as stack, _bar(environment) as on_progress:

        def opened(records: int) -> Engine:
            name, why = choose(options, records)
            if options.name is EngineName.AUTO:
                environment.notice(f"Built by {_ENGINES[name]}: {why}.")
            return stack.enter_context(open_engine(options, records))

        now_ms = environment.now_ms()
        return build(warehouse, clusters, opened, now_ms=now_ms, is_rebuild=is_rebuild, on_progress=on_progress)


_ENGINES = {"local": "this machine's processes", "spark": "Spark"}


@contextmanager
def _bar(environment: Environment) -> Iterator[Callable[[Progress], object]]:
    """Shows records as they are built; nothing where nobody looks at a terminal."""
    if not environment.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("Building"), BarColumn(), MofNCompleteColumn(), TextColumn("records"), TimeElapsedColumn())
    with Bar(*columns, console=Console(file=environment.stderr), transient=True) as bar:
        task = bar.add_task("Building", total=None)
        yield lambda progress: bar.update(task, completed=progress.records, total=progress.of_records)
