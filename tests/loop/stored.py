"""What Redis counts of the harness's predictions, beside what it must."""

from __future__ import annotations

from collections import Counter

import numpy as np
from harness import Deployment, prediction


def expected_cells(deployment: Deployment, numbers: range) -> Counter[tuple[str, str, int]]:
    """What traffic must count of some items: by region and score bin, and by predicted class and score bin."""
    space = deployment.settings.cell_space("sorter")
    counts: Counter[tuple[str, str, int]] = Counter()
    for number in numbers:
        item = prediction(number)
        score_bin = int(space.bins(np.array([item["score"]]))[0])
        counts["region", item["attributes"]["region"], score_bin] += 1
        counts["class", item["predicted_class"], score_bin] += 1
    return counts


def stored_cells(deployment: Deployment) -> Counter[tuple[str, str, int]]:
    """What the stored traffic counts, likewise."""
    space = deployment.settings.cell_space("sorter")
    traffic = deployment.facts().traffic().traffic
    regions = traffic.tables["region"]
    tables = {
        "region": (regions.names, regions.block("bins").counts),
        "class": (space.classes, traffic.whole.counts.reshape(len(space.classes), -1)),
    }
    return Counter(
        {
            (kind, names[row], score_bin): int(counts[row, score_bin])
            for kind, (names, counts) in tables.items()
            for row, score_bin in np.argwhere(counts).tolist()
        }
    )
