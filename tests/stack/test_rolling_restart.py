"""Every process in turn is ended and replaced under load: nobody notices, neither people nor Prometheus."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from apache_kafka import ApacheKafka
from committed_alerting import hurried_rules
from fleet import Fleet, Load, end, scraping
from harness import Deploy, Deployment, truth, wait_for
from missing_programs import program
from monitoring_servers import Prometheus
from procedures import PAGE
from stored import expected_cells, stored_cells

from service.serving.prometheus import SPECS
from service.store.outcome_entries import BEGINNING, OutcomeEntry

SCRAPE_SECONDS = 2.0
"""Prometheus gives a scrape as long: a process that restarts beside it on a busy machine answers late."""

LOOKBACK_SECONDS = 2 * SCRAPE_SECONDS
"""A series has a value if a scrape of so long before had one, and none since came without it.

So a sample may be late by one interval, as on a busy machine, and no more. Prometheus ends a series with the
first scrape that fails or comes without it, so looking back hides nothing that was away.
"""

ASSESSMENTS = (
    "{weakest: {task: identification, grouping: region, budget: {labels: 100000}, lease_seconds: 300}, "
    "classes: {task: estimation, grouping: class, budget: {labels: 100000}, lease_seconds: 300}}"
)

RECORDED = '{__name__=~"(job|model|group|grouping|topic):.+"}'
"""What the alerts are made of: recorded over all replicas."""

_OF_TROUBLES = (
    "rounds_failed_total|flushes_refused_total|dead_letters_total|records_lost_total|log_breaks_total"
)
_PER_PROCESS = f"credence_(consumer_.+|build_info|.+_bucket|.+_created|{_OF_TROUBLES})"
_LABELS = sorted({label for spec in SPECS.values() for label in spec.labels})
SHOWN = f'max by (__name__, {", ".join(_LABELS)}) ({{__name__=~"credence_.+", __name__!~"{_PER_PROCESS}"}})'
"""What dashboards are made of: every metric, whichever replica shows it.

But for what a consumer tells of its own partitions: nobody reads them while it restarts in place, so there is
nothing to tell but what `topic:credence_consumer_lag_seconds:max` has of the others. And but for counters of
troubles, such as a round that a busy machine is too slow for: a process has them from its first one on.
"""

WAXES_AND_WANES = {
    "credence_requests_oldest_timestamp_seconds",
    "model:credence_requests_oldest_timestamp_seconds:min",
    "credence_group_confirmed_change_timestamp_seconds",
    "group:credence_group_confirmed_change_timestamp_seconds:max",
    "credence_group_change_point_timestamp_seconds",
}
"""Absent while no request waits and while labels tell of no change, which people bring about."""

Series = frozenset[tuple[str, str]]


@dataclass
class Rolled:
    """What was found after every process was ended and replaced."""

    deployment: Deployment
    prometheus: Prometheus
    load: Load
    began: float
    ended: float

    def outcomes(self) -> list[OutcomeEntry]:
        page = self.deployment.facts().outcomes(BEGINNING)
        assert page is not None
        assert page.complete
        return page.labelled

    def at_all_instants(self, query: str) -> dict[Series, set[float]]:
        """Every series of a query, and at which instants of the roll it has a value."""
        answer = self.prometheus.get(
            "query_range",
            query=query,
            start=f"{self.began}",
            end=f"{self.ended}",
            step=f"{SCRAPE_SECONDS / 2}",
        )
        return {
            frozenset(series["metric"].items()): {float(at) for at, _ in series["values"]}
            for series in answer["result"]
        }


@pytest.fixture(scope="module")
def rolled(
    module_deploy: Deploy, apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rolled]:
    program("prometheus", package="prometheus")
    deployment = module_deploy(broker=apache_kafka.bootstrap_servers, assessments=ASSESSMENTS)
    # Who is away for longer loses its partitions, and all are handed out anew. No restart takes as long.
    deployment.configure("kafka", session_timeout_seconds=120)
    # As in service, a leader is not replaced for a slow round.
    deployment.configure("schedule", lease_seconds=15)
    folder = tmp_path_factory.mktemp("prometheus")
    load = Load(deployment, predictions_per_second=200)
    with Fleet(deployment) as fleet, load.flowing():
        for number in ("1", "2"):
            for kind in ("predictions", "labels"):
                name = f"{kind}-{number}"
                fleet.add(name, "consume", kind, CREDENCE_KAFKA__INSTANCE_ID=name)
            fleet.add(f"schedule-{number}", "schedule")
            fleet.add(f"serve-{number}", "serve")
        rules = Path(hurried_rules("credence.recording.rules.yaml", folder))
        config = scraping(fleet, seconds=SCRAPE_SECONDS, rules=rules)
        lookback = f"--query.lookback-delta={LOOKBACK_SECONDS:g}s"
        with Prometheus(folder, config, options=[lookback]) as prometheus:
            fleet.wait_until_ready()
            wait_for(lambda: _all_is_shown(deployment, prometheus), seconds=60, what="all series")
            began = time.time()
            for name in sorted(fleet.members, key=_turn):
                sys.stdout.write(f"{time.time() - began:.1f} s: {name} {fleet.members[name].port}\n")
                if name.startswith(("schedule", "serve")):
                    fleet.replace(
                        name,
                        noticed=lambda process: (
                            prometheus.value(f'up{{instance="127.0.0.1:{process.port}"}}') == 1
                        ),
                    )
                else:
                    fleet.restart(
                        name,
                        noticed=lambda process: bool(
                            prometheus.query(
                                f'credence_consumer_lag_seconds{{instance="127.0.0.1:{process.port}"}}'
                            )
                        ),
                    )
            issued = deployment.facts().requests().tallies
            wait_for(
                lambda: deployment.facts().requests().tallies != issued, seconds=60, what="more requests"
            )
            ended = time.time()
            _come_to_rest(fleet, load, deployment)
            yield Rolled(deployment, prometheus, load, began, ended)


def _turn(name: str) -> tuple[int, str]:
    """When it is a member's turn: roles in the order that docs/operations.md tells."""
    logged = re.findall(r"^\d\. (labels|predictions|schedule|page)(?: consumer|r)?s$", PAGE, re.MULTILINE)
    assert len(logged) == 4
    role = name.partition("-")[0].replace("serve", "page")
    return logged.index(role), name


def _all_is_shown(deployment: Deployment, prometheus: Prometheus) -> bool:
    """Whether labels have come, consumers tell of all partitions, and what is recorded of that is there."""
    partitions = deployment.settings.kafka.partitions
    return (
        prometheus.value("count(credence_consumer_lag_records)") == 2 * partitions
        and prometheus.value("count(count by (instance, topic) (credence_consumer_lag_records))") == 4
        and len(prometheus.query("topic:credence_consumer_lag_seconds:max")) == 2
        and bool(prometheus.query("model:credence_last_label_timestamp_seconds:max"))
        and bool(prometheus.query("grouping:credence_traffic_predictions:rate5m"))
        and sum(deployment.facts().requests().tallies.values()) > 100
    )


def _come_to_rest(fleet: Fleet, load: Load, deployment: Deployment) -> None:
    """Nobody asks any more, and all that was sent and asked is taken in."""
    for name in ("schedule-1", "schedule-2"):
        end(fleet.members[name])

    def all_answered() -> bool:
        requests = deployment.facts().requests()
        return not requests.open and not requests.outbox_size

    load.drain(all_answered, seconds=60, what="all answers")
    wait_for(lambda: deployment.predictions_stored() >= load.sent, seconds=60, what="all predictions")


def test_every_prediction_is_counted_once(rolled: Rolled) -> None:
    assert stored_cells(rolled.deployment) == expected_cells(rolled.deployment, range(rolled.load.sent))


def test_every_request_is_sent_and_none_is_sent_twice(rolled: Rolled) -> None:
    sent = Counter((request.request_id, request.attempt) for request in rolled.load.labeller.seen)
    assert set(sent.values()) == {1}
    tallies = rolled.deployment.facts().requests().tallies
    assert sum(count for (event, _), count in tallies.items() if event == "issued") == len(sent)
    assert {request.attempt for request in rolled.load.labeller.seen} == {1}
    assert len({request.item_id for request in rolled.load.labeller.seen}) == len(sent)


def test_every_answer_is_one_outcome(rolled: Rolled) -> None:
    found = Counter(
        (entry.fact.request_id, entry.fact.item_id, entry.label.true_class) for entry in rolled.outcomes()
    )
    assert found == Counter(
        (request.request_id, request.item_id, truth(int(request.item_id.removeprefix("item-"))))
        for request in rolled.load.labeller.seen
    )


@pytest.mark.parametrize("query", [RECORDED, SHOWN], ids=["recorded", "shown"])
def test_no_series_has_a_gap_longer_than_a_scrape_interval(rolled: Rolled, query: str) -> None:
    instants = set.union(*(found := rolled.at_all_instants(query)).values())
    assert len(instants) >= (rolled.ended - rolled.began) / SCRAPE_SECONDS
    gaps = {
        tuple(sorted(series)): sorted(round(at - rolled.began, 1) for at in missing)
        for series, there in found.items()
        if dict(series)["__name__"] not in WAXES_AND_WANES
        # What was not there when it began must not go again either.
        and (missing := {at for at in instants - there if at > min(there)})
    }
    down = {
        dict(series)["instance"]: sorted(round(at - rolled.began, 1) for at in there)
        for series, there in rolled.at_all_instants("up == 0").items()
    }
    assert not gaps, "\n".join([f"not scraped: {down}", *(f"{dict(s)} at {at} s" for s, at in gaps.items())])
    assert len(found) > 20
