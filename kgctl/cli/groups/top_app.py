"""The live view of ``kgctl top``."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static

from kgctl.cli.groups.top import COLUMNS, SORTS, TopLook
from kgctl.cli.render import cell_text, fitted
from kgctl.cli.session import NamedCluster
from kgctl.errors import KgctlError


class TopApp(App[None]):
    """A table that is filled anew at each look; a cluster that does not answer is told, and asked again."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("s", "sort", "Sort"),
        Binding("slash", "filter", "Filter"),
        Binding("escape", "clear", "All", show=False),
    ]

    def __init__(self, look: TopLook, cluster: NamedCluster, interval_ms: int) -> None:
        super().__init__()
        self._look = look
        self._cluster = cluster
        self._interval_s = interval_ms / 1000

    def compose(self) -> ComposeResult:
        """A line of title, the table, a field for the filter, the keys."""
        yield Static(id="title")
        yield DataTable(id="groups", cursor_type="row", zebra_stripes=True)
        yield Static(id="whole", markup=False)
        yield Input(id="filter", placeholder="part of a group id; Enter applies, Escape shows all")
        yield Footer()

    def on_mount(self) -> None:
        """Make the columns, look at once, and then again and again."""
        table = self.query_one(DataTable)
        for column in COLUMNS:
            table.add_column(column.title, key=column.key)
        self.query_one(Input).display = False
        table.focus()
        self.set_interval(self._interval_s, self.look)
        self.call_after_refresh(self.look)

    def look(self) -> None:
        """Look in a thread, so that keys are answered meanwhile."""
        self.run_worker(self._take, thread=True, exclusive=True, exit_on_error=False)

    def _take(self) -> None:
        try:
            self._look.take()
        except KgctlError as error:
            self.call_from_thread(self.query_one("#title", Static).update, f"{error.message}; trying again")
            return
        self.call_from_thread(self.show)

    def show(self) -> None:
        table = self.query_one(DataTable)
        cursor = table.cursor_row
        table.clear()
        found = self._look.rates()
        cells = [[cell_text(value) for value in column.cells(found)] for column in COLUMNS]
        shown, _ = fitted(COLUMNS, cells, self.size.width)
        for row, texts in zip(found, zip(*shown, strict=True), strict=True):
            table.add_row(*texts, key=row.group_id)
        table.move_cursor(row=min(cursor, max(0, table.row_count - 1)))
        told = f"  ({len(self._look.errors)} errors: {self._look.errors[0].message})" if self._look.errors else ""
        told += "".join(f"  ({line})" for line in self._look.left_out())
        self.query_one("#title", Static).update(self._look.title(self._cluster) + told)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Below the table the group of the cursor's line stands whole where its name is cut."""
        name = cell_text(event.row_key.value)
        is_cut = event.data_table.get_row(event.row_key)[0] != name
        self.query_one("#whole", Static).update(name if is_cut else "")

    def on_resize(self) -> None:
        self.show()

    def action_sort(self) -> None:
        keys = list(SORTS)
        self._look.sort = keys[(keys.index(self._look.sort) + 1) % len(keys)]
        self.show()

    def action_filter(self) -> None:
        field = self.query_one(Input)
        field.display = True
        field.focus()

    def action_clear(self) -> None:
        field = self.query_one(Input)
        field.value, field.display = "", False
        self._look.filter = ""
        self.query_one(DataTable).focus()
        self.show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._look.filter = event.value
        self.query_one(Input).display = False
        self.query_one(DataTable).focus()
        self.show()
