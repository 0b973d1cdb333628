"""The labeller of the rare class: `python -m service.demo.rare.labeller` answers in time, and rightly."""

from __future__ import annotations

import numpy as np

from service.demo.journal import LABELLER_FILE
from service.demo.labeller import Intention, Plan, answer_requests
from service.demo.process import parse_arguments
from service.demo.rare.configuration import MODELS
from service.demo.rare.transactions import Transactions, item_number
from service.domain.messages import LabelRequest

_PROMPT_SECONDS = (0.2, 1.0)


def expert_plan(seed: int) -> Plan:
    """One prompt and right answer to every request about transactions of this seed."""
    transactions = Transactions(seed)

    def plan(request: LabelRequest) -> list[Intention]:
        item = item_number(request.item_id)
        after = float(np.random.default_rng((seed, 4, item)).uniform(*_PROMPT_SECONDS))
        return [Intention(after, "answer", transactions.true_class(item))]

    return plan


if __name__ == "__main__":
    given = parse_arguments("Answers label requests of the demo of a rare class.")
    answer_requests(
        given.config.kafka, expert_plan(given.seed), models=MODELS, path=given.folder / LABELLER_FILE
    )
