"""What Redis counts of the harness's predictions, beside what it must."""

from __future__ import annotations

from collections import Counter

import numpy as np
from harness import Deployment, prediction


def expected_cells(deployment: Deployment, numbers: range) -> Counter[tuple[str, str, int]]:
    """What traffic must count of some items: by region, predicted class and score bin."""
    space = deployment.settings.cell_space("sorter")
    counts: Counter[tuple[str, str, int]] = Counter()
    for number in numbers:
        item = prediction(number)
        score_bin = int(space.bins(np.array([item["score"]]))[0])
        counts[item["attributes"]["region"], item["predicted_class"], score_bin] += 1
    return counts


def stored_cells(deployment: Deployment) -> Counter[tuple[str, str, int]]:
    """What the stored traffic counts, likewise."""
    space = deployment.settings.cell_space("sorter")
    facts = deployment.facts().traffic()
    shape = (len(facts.combinations), len(space.classes), space.bin_count)
    counts: Counter[tuple[str, str, int]] = Counter()
    for combination, class_index, score_bin in np.argwhere(facts.traffic.counts.reshape(shape)):
        key = (facts.combinations[combination][0], space.classes[class_index], int(score_bin))
        counts[key] = int(facts.traffic.counts.reshape(shape)[combination, class_index, score_bin])
    return counts
