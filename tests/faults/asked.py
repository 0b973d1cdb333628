"""What must hold of label requests and budgets when a trial rests."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from findings import Findings
from layout import MODELS
from stand import Records, Stand
from workload import gold_items

from service.store.facts import RequestFacts
from service.store.request_registry import request_id_of

MOST_ATTEMPTS = 2


@dataclass(frozen=True)
class Asked:
    """What the label-requests topic holds of one model.

    Attributes:
        requests: request ids by item id and opinion.
        gold: items that were requested as gold items.
        never_sent: requests, by Redis's count, that expired before they could be sent.
        facts: what Redis holds.
    """

    requests: dict[str, dict[int, str]]
    gold: set[str]
    never_sent: int
    facts: RequestFacts

    def tallied(self, *events: str, gold: bool = False) -> int:
        """How often some events are counted, of usual items or of gold items."""
        names = {f"gold_{event}" if gold else event for event in events}
        return sum(count for (event, _), count in self.facts.tallies.items() if event in names)


def check_requests(
    findings: Findings, stand: Stand, model: str, *, records: Records, forgetful: bool
) -> Asked:
    """Requests and budgets: every request is of one item and opinion, none is there twice, all are counted.

    Args:
        findings: where problems are noted.
        stand: at rest.
        model: whose requests.
        records: of the label-requests topic.
        forgetful: whether Redis was set back to an older state, or emptied, on the way. It then counts
            those alone that it has not forgotten.
    """
    sent = [json.loads(record.value) for kept in records.values() for record in kept]
    file, requests, gold = gold_items(), defaultdict[str, dict[int, str]](dict), set[str]()
    texts: dict[tuple[str, int], set[str]] = defaultdict(set)
    for message in sent:
        if message["model"] != model:
            continue
        request, item, opinion = message["request_id"], message["item_id"], message.get("opinion", 1)
        findings.expect(request == request_id_of(model, item, opinion), f"{request} is sent for {item}")
        findings.expect(1 <= message["attempt"] <= MOST_ATTEMPTS, f"{request}: {message['attempt']} attempts")
        requests[item][opinion] = request
        texts[request, message["attempt"]].add(json.dumps(message, sort_keys=True))
        if item in file and message.get("payload") == file[item]["payload"]:
            gold.add(item)
    unlike = [key for key, shown in texts.items() if len(shown) > 1]
    findings.expect(forgetful or not unlike, f"attempts that were sent twice, and differ: {unlike}")
    opinions = {item: sorted(of) for item, of in requests.items()}
    gaps = {item: of for item, of in opinions.items() if of != list(range(1, len(of) + 1))}
    findings.expect(not gaps, f"somebody is asked before others: {gaps}")
    findings.requests = sum(map(len, requests.values()))
    findings.further_requests = findings.requests - len(requests)

    facts = stand.site().reader(model).requests()
    _check_budgets(findings, facts, MODELS[model]["assessments"])
    asked = Asked(requests, gold, 0, facts)
    issued = asked.tallied("issued") + asked.tallied("issued", gold=True)
    expired = asked.tallied("expired") + asked.tallied("expired", gold=True)
    never_sent = issued - findings.requests
    findings.expect(never_sent <= expired, f"{issued} issued, {findings.requests} sent, {expired} expired")
    findings.expect(forgetful or never_sent >= 0, f"{issued} issued, {findings.requests} sent")
    return Asked(requests, gold, max(never_sent, 0), facts)


def _check_budgets(findings: Findings, facts: RequestFacts, assessments: dict[str, Any]) -> None:
    """Every request is paid once, and gives its label back if it expires."""
    for name, settings in assessments.items():
        used = sum(count for field, count in facts.budget.items() if field.startswith(f"{name}|"))
        issued, expired = (
            sum(facts.tallies.get((f"{prefix}{event}", name), 0) for prefix in ("", "gold_"))
            for event in ("issued", "expired")
        )
        findings.expect(used == issued - expired, f"{name}: {used} used, {issued} issued, {expired} expired")
        findings.expect(used <= settings["budget"]["labels"], f"{name}: {used} labels used")
