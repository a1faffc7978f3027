"""What a machine about the group ``g`` of one of the newer protocols has, whatever its members do."""

from __future__ import annotations

from abc import abstractmethod
from itertools import count
from typing import Any, Generic, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kgctl.coordinator.modern.group import ModernGroup
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, Transition
from kgctl.model.requests import DeleteGroups
from tests.support.coordinator_harness import CoordinatorHarness

G = TypeVar("G", bound=ModernGroup[Any, Any])
LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
"""With these a client starts over."""


class ModernGroupMachine(RuleBasedStateMachine, Generic[G]):
    """Another coordinator may take over, the group may be deleted; its states and epochs change as they may."""

    kind: type[G]
    transitions: tuple[Transition[GroupState], ...]

    def __init__(self) -> None:
        super().__init__()
        self.sizes = {"t": 3, "u": 2}
        self.ids = count(1)
        self.epochs = (0, 0)
        self.state: GroupState | None = None
        self.harness = CoordinatorHarness(topics=self.sizes)

    @property
    def group(self) -> G | None:
        """The group, if there is one."""
        group = self.harness.any_group("g")
        return group if isinstance(group, self.kind) else None

    @rule()
    def reload(self) -> None:
        """Another coordinator takes over; what was done elsewhere goes on."""
        self.harness.driver.reload()

    @rule()
    def the_group_is_deleted(self) -> None:
        """If it is empty."""
        self.harness.send(DeleteGroups, group_ids=("g",))

    @rule()
    def look(self) -> None:
        """Reading changes nothing."""
        before = self.harness.driver.coordinator.durable(), len(self.harness.log)
        assert (self.described() is ErrorCode.NONE) == (self.group is not None)
        assert (self.harness.driver.coordinator.durable(), len(self.harness.log)) == before

    @abstractmethod
    def described(self) -> ErrorCode:
        """Read all there is to read; what a description of the group says."""

    @invariant()
    def states_change_as_the_table_says(self) -> None:
        """Or there is no group."""
        state = None if self.group is None else self.group.group_state
        changes = {(change.source, change.target) for change in self.transitions}
        assert None in (self.state, state) or self.state == state or (self.state, state) in changes, (self.state, state)
        self.state = state

    @invariant()
    def epochs_do_not_go_back(self) -> None:
        """As long as it is the same group."""
        group = self.group
        now = (group.group_epoch, group.assignment_epoch) if group is not None else (0, 0)
        assert group is None or now >= self.epochs
        self.epochs = now
