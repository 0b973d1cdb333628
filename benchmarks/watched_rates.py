"""How often intervals of error rates hold, and how soon gaps are confirmed, through the service's own path.

python -m benchmarks.watched_rates

Classifiers of known truth with two to six groups, whose scores may be too sure. Predictions and labels pass
through consumers' steps, Redis and rounds. Labels are requested by the policy `adaptive`, or at random. What
is `plain` is evidence from labels of random items that uses nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from benchmarks.error_rates import ALPHA, DIFFERENT, RATE, World
from benchmarks.flushes import Record
from benchmarks.rated_items import ITEMS, Items, made, of_world
from benchmarks.site import MODEL, Site, open_site, settings_of
from service.demo.servers import EmbeddedRedis
from service.monitoring.error_rates import ErrorRatesSnapshot
from service.replay.tables import Cell, Table, print_tables
from service.statistics.rates.evidence import LIMITS
from service.statistics.rates.gaps import log_e_any_difference
from service.statistics.rates.label_evidence import Capital, LabelEvidence
from service.statistics.rates.measures import RATES
from service.store.labels import LabelEvent

LABELS = (60, 120, 240)
POLICIES = ("adaptive", "random")
TABLES = ("coverage", "gaps", "rare")
GAP = 0.05
MOST = 1_600
"""Labels of a run, at the most."""
RARE = World((0.02, 0.02), (0.7, 0.6), (0.02, 0.02))
RARE_LABELS = (200, 400)
RARE_BINS: dict[str, int | list[float]] = {
    "10 score bins": 10,
    "fine score bins": [0.5, 0.7, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999],
}
CLASSES = ("keep", "flag")
NOW = 1_800_000_000.0
_AT_ONCE = 20


def _settings(policy: str, bins: int | list[float], more: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "score_bins": bins,
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
                **more,
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
    policy: str,
    items: Items,
    rng: np.random.Generator,
    redis_url: str,
    *,
    bins: int | list[float] = 10,
    **more: Any,
) -> Iterator[tuple[int, ErrorRatesSnapshot]]:
    """Labels, and what is known by then, after every round; `more` are further keys of the assessment."""
    order = rng.permutation(ITEMS)
    items = Items(items.groups[order], items.positive[order], items.selected[order], items.scores[order])
    with open_site(settings_of(_settings(policy, bins, more), redis_url), rng) as site:
        site.take_in([_records(items)], NOW)
        answered, snapshot = 0, site.refresh(NOW)
        while True:
            answered += _answer(site, items, rng)
            snapshot = site.refresh(NOW)
            yield answered, snapshot.error_rates["fair"]


def _after(
    labels: Sequence[int], rounds: Iterator[tuple[int, ErrorRatesSnapshot]]
) -> Iterator[ErrorRatesSnapshot]:
    """What is known after each number of labels."""
    for count in labels:
        yield next(known for answered, known in rounds if answered >= count)


def _answer(site: Site, items: Items, rng: np.random.Generator) -> int:
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


def _rows(policy: str, seed: int, labels: Sequence[int], redis_url: str) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    items = made(rng)
    return [_row(items, known) for known in _after(labels, snapshots(policy, items, rng, redis_url))]


def of_gaps(runs: int, redis_url: str) -> Table:
    """Labels until a gap of .45 against .25 is confirmed to be above 5 points."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, world in DIFFERENT.items():
        taken: dict[str, list[float]] = {way: [] for way in (*POLICIES, "plain")}
        for seed in range(runs):
            items = of_world(world, np.random.default_rng(seed))
            for policy in POLICIES:
                found = snapshots(
                    *(policy, items, np.random.default_rng((1, seed)), redis_url),
                    max_differences={RATE.name: GAP},
                )
                taken[policy].append(next(count for count, known in found if _is_confirmed(known, count)))
            taken["plain"].append(_plain(items, np.random.default_rng((2, seed))))
        means = [float(np.mean(taken[way])) for way in taken]
        rows.append((name, (*means, means[0] / means[2])))
    title = (
        f"labels until a gap of .45 against .25 is confirmed to be above {100 * GAP:g} points: {runs} runs"
    )
    return Table(title, "groups", (*POLICIES, "plain", "adaptive / plain"), rows)


def _is_confirmed(known: ErrorRatesSnapshot, count: int) -> bool:
    proof = known.rates[RATE.name].proof
    return count >= MOST or (proof is not None and proof.difference_confirmed)


def _plain(items: Items, rng: np.random.Generator) -> float:
    """Labels of random items until the gap is confirmed by nothing but these."""
    order, counts = rng.permutation(ITEMS), np.zeros((2, 2, 2))
    for count in range(_AT_ONCE, MOST + 1, _AT_ONCE):
        some = order[count - _AT_ONCE : count]
        place = items.groups[some], items.positive[some].astype(int), items.selected[some].astype(int)
        np.add.at(counts, place, 1)
        capital = Capital.of_sample(RATE, LIMITS, counts, np.zeros((2, 2)))
        evidence = LabelEvidence.of(RATE, LIMITS, capital)
        if log_e_any_difference(evidence, GAP)[0] >= -np.log(ALPHA):
            return float(count)
    return float(MOST)


def of_rare(runs: int, redis_url: str) -> Table:
    """How well recall by group is known where one item in 50 is positive."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, bins in RARE_BINS.items():
        for policy in POLICIES:
            widths = []
            for seed in range(runs):
                items, rng = of_world(RARE, np.random.default_rng(seed)), np.random.default_rng((1, seed))
                found = snapshots(policy, items, rng, redis_url, bins=bins, rate="true_positive_rate")
                known = [each.rates["true_positive_rate"].estimate for each in _after(RARE_LABELS, found)]
                widths.append([100 * float((each.upper - each.lower).mean()) for each in known])
            rows.append((f"{policy}, {name}", tuple(float(width) for width in np.mean(widths, axis=0))))
    title = f"width of the 95% interval of recall by group, points, where 1 in 50 is positive: {runs} runs"
    return Table(title, "policy", tuple(f"{count} labels" for count in RARE_LABELS), rows)


def table(runs: int, labels: Sequence[int], redis_url: str) -> Table:
    """Coverage and precision by policy and number of labels."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for policy in POLICIES:
        found = np.array([_rows(policy, seed, labels, redis_url) for seed in range(runs)])
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
    parser.add_argument("--table", choices=TABLES, action="append", help="repeatable (default: all)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    with EmbeddedRedis() as server:
        make = {
            "coverage": lambda: table(options.runs, options.labels, server.url),
            "gaps": lambda: of_gaps(options.runs, server.url),
            "rare": lambda: of_rare(options.runs, server.url),
        }
        found = [make[name]() for name in options.table or TABLES]
    print_tables(found, as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
