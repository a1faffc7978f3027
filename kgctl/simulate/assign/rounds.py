"""Round after round, as long as a cooperative group needs to settle."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.assignors import get_assignor
from kgctl.assignors.spec import promises_of
from kgctl.simulate.assign.answers import Answer, answer
from kgctl.simulate.assign.group_document import GroupDocument

MAX_ROUNDS = 20


def rounds(document: GroupDocument, name: str, *, until_settled: bool = False) -> Sequence[Answer]:
    """The answers of one round, or of as many as it takes until no member has to revoke anything.

    Between two rounds every member revokes what it does not have any longer, and joins again with the rest in a new generation.
    An eager assignor needs one round.

    Raises:
        UsageError: as `answer`.
    """
    answers = [answer(document, name)]
    if not until_settled or not promises_of(get_assignor(name)).is_cooperative:
        return answers
    generation = max((document.max_generation, 0, *(member.generation or 0 for member in document.members)))
    while answers[-1].moved and len(answers) < MAX_ROUNDS:
        generation += 1
        document = document.after_round(dict(answers[-1].assignment), generation)
        answers.append(answer(document, name))
    return answers
