"""How often the intervals of error rates hold, through the service's own path.

python -m benchmarks.watched_rates

Classifiers of known truth with two to six groups, whose scores may be too sure. Predictions and labels pass
through consumers' steps, Redis and rounds. Labels are requested by the policy `adaptive`, or at random.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from scipy import special

from benchmarks.flushes import Record
from benchmarks.site import MODEL, Site, open_site, settings_of
from service.demo.servers import EmbeddedRedis
from service.domain.arrays import Flags, Floats, Indices
from service.domain.assessments import RateName
from service.monitoring.error_rates import ErrorRatesSnapshot
from service.replay.tables import Cell, Table, print_tables
from service.statistics.rates.measures import RATES
from service.store.labels import LabelEvent

LABELS = (60, 120, 240)
POLICIES = ("adaptive", "random")
ITEMS = 5_000
CLASSES = ("keep", "flag")
NOW = 1_800_000_000.0
_AT_ONCE = 20


class Items(NamedTuple):
    """Predictions [N]."""

    groups: Indices
    positive: Flags
    selected: Flags
    scores: Floats  # of the predicted class

    def rates(self, name: RateName) -> Floats:
        """A rate of every group [G]; NaN where nothing counts."""
        place = self.positive.astype(np.intp), self.selected.astype(np.intp)
        counted, among = RATES[name].numerator[place], RATES[name].denominator[place]
        with np.errstate(invalid="ignore"):
            return np.bincount(self.groups, counted) / np.bincount(self.groups, among)


def made(rng: np.random.Generator) -> Items:
    """One classifier; both classes have normal scores in every group."""
    count = int(rng.integers(2, 7))
    groups = np.sort(rng.choice(count, ITEMS, p=rng.dirichlet(np.full(count, 3.0))))
    _, groups = np.unique(groups, return_inverse=True)
    count = int(groups.max()) + 1
    base = rng.uniform(0.05, 0.6, count)
    recall, false = rng.uniform(0.4, 0.95, count), rng.uniform(0.03, 0.45, count)
    positive = rng.random(ITEMS) < base[groups]
    high, low = special.ndtri(recall), special.ndtri(false)
    latent = rng.normal(np.where(positive, high[groups], low[groups]))
    logits = special.logit(base) + (high - low) * -(high + low) / 2
    slope = np.exp(rng.normal(0, 0.5)) * (high - low)[groups]
    chance = special.expit(logits[groups] + slope * latent + rng.normal(0, 0.5))
    selected = latent > 0
    return Items(groups, positive, selected, np.where(selected, chance, 1 - chance))


def _settings(policy: str) -> dict[str, Any]:
    return {
        "classes": list(CLASSES),
        "traffic_half_life_days": None,
        "draw_half_life_hours": None,
        "groupings": {"group": {"by": "attribute", "attribute": "group"}},
        "assessments": {
            "fair": {
                "task": "error_rates",
                "grouping": "group",
                "positive_class": CLASSES[1],
                "policy": policy,
                "budget": {"labels": 100_000},
                "max_in_flight": _AT_ONCE,
            }
        },
    }


def _records(items: Items) -> list[Record]:
    found = []
    for number in range(ITEMS):
        message = {
            "model": MODEL,
            "item_id": str(number),
            "predicted_class": CLASSES[int(items.selected[number])],
            "score": float(items.scores[number]),
            "attributes": {"group": f"g{items.groups[number]}"},
        }
        found.append(Record(number, int(1_000 * NOW), msgspec.json.encode(message)))
    return found


def snapshots(
    policy: str, seed: int, labels: Sequence[int], redis_url: str
) -> Iterator[tuple[Items, ErrorRatesSnapshot]]:
    """What is known after each number of labels."""
    rng = np.random.default_rng(seed)
    items = made(rng)
    order = rng.permutation(ITEMS)
    items = Items(items.groups[order], items.positive[order], items.selected[order], items.scores[order])
    with open_site(settings_of(_settings(policy), redis_url), rng) as site:
        site.take_in([_records(items)], NOW)
        answered = 0
        for count in labels:
            while answered < count:
                answered += _answer(site, items, rng)
            yield items, site.refresh(NOW).error_rates["fair"]


def _answer(site: Site, items: Items, rng: np.random.Generator) -> int:
    site.refresh(NOW)
    events = [
        LabelEvent(
            one["request_id"],
            one["item_id"],
            "answer",
            CLASSES[int(items.positive[int(one["item_id"])])],
            rng.bytes(8).hex(),
            NOW,
            "bench",
        )
        for one in site.ask(NOW)
    ]
    site.answer(events, NOW)
    return len(events)


def _row(items: Items, found: ErrorRatesSnapshot) -> list[float]:
    """Whether the intervals of every rate hold in all groups at once, and of difference and ratio.

    Then the error and the width of the difference of the false positive rate.
    """
    row: list[float] = []
    for name in RATES:
        truth, rate = items.rates(name), found.rates[name]
        known = ~np.isnan(truth)
        inside = (rate.estimate.lower <= truth + 1e-9) & (truth - 1e-9 <= rate.estimate.upper)
        row.append(float(inside[known].all()))
    truth, rate = items.rates("false_positive_rate"), found.rates["false_positive_rate"]
    if rate.difference is None or rate.ratio is None:
        return [*row, np.nan, np.nan, np.nan, np.nan]
    apart, alike = float(np.ptp(truth)), float(truth.min() / truth.max())
    lower, mean, upper = rate.difference
    row += [float(lower <= apart + 1e-9 <= upper + 2e-9), float(rate.ratio[0] <= alike <= rate.ratio[2])]
    return [*row, mean - apart, upper - lower]


def table(runs: int, labels: Sequence[int], redis_url: str) -> Table:
    """Coverage and precision by policy and number of labels."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for policy in POLICIES:
        found = np.array(
            [[_row(*each) for each in snapshots(policy, seed, labels, redis_url)] for seed in range(runs)]
        )
        for at, count in enumerate(labels):
            of = found[:, at]
            error = float(np.sqrt(np.nanmean(of[:, -2] ** 2)))
            shown = (*(100 * np.nanmean(of[:, :-2], axis=0)), 100 * error, 100 * np.nanmean(of[:, -1]))
            rows.append((f"{policy}, {count}", tuple(float(value) for value in shown)))
    return Table(
        f"95% intervals of two to six groups, % that hold in all groups at once: {runs} classifiers",
        "policy, labels",
        (
            *(name.replace("_", " ") for name in RATES),
            "difference, FPR",
            "ratio, FPR",
            "RMSE of the difference",
            "its width",
        ),
        rows,
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure how often the intervals of error rates hold.")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--labels", type=int, nargs="+", default=LABELS, help="numbers of labels to look at")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    with EmbeddedRedis() as server:
        found = table(options.runs, options.labels, server.url)
    print_tables([found], as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
