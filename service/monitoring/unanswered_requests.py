"""Requests that ended without a label: how many there are, and what estimates take their items for (pure).

What is missing may be what the model gets wrong. By default a skipped request says something about its item,
so estimates allow for any true class: the worst case (Manski, 1990). An expired one says something about
the vendor, unless labels show that expiry depends on the item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from service.config.model import ModelSettings
from service.config.unanswered import Treatment
from service.domain.arrays import Ints
from service.monitoring.label_columns import EndedRequests
from service.monitoring.outcome_aggregates import ABSENT, EXPIRED_CLASS, OF_REQUESTS, SKIPPED_CLASS
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.missing_answers import log_bayes_factor, ranks

_EVEN_ODDS: Final = 0.5
MISSING_SHARE: Final = 0.10
"""Share of requests whose items may have any true class above which it is a problem."""

_FEWEST: Final = 20
"""Ended requests from which shares are of use."""

_NEWEST: Final = 20_000
"""Ended requests that are tested, which bounds the time that it takes."""

_BLOCK: Final = 200
"""Requests that end one after the other, and are compared: an outage says nothing of the items."""


@dataclass(frozen=True)
class UnansweredRequests:
    """Requests of one model that ended without a label, among all whose outcomes are kept."""

    ended: int
    skipped: int
    expired: int
    # probability that it depends on the item whether a request is skipped, or expires
    skip_dependence: float
    expiry_dependence: float
    worst_case: frozenset[int]  # reasons for which any true class is allowed for
    ended_by_score: Ints  # ended requests by score bin [B]
    unanswered_by_score: Ints  # those without a label among them [B]
    # what is in place of a class (`outcome_aggregates`) where any true class is allowed for, also of items
    # that waited for an unrequested label in vain
    any_class: frozenset[int]

    @property
    def share(self) -> float:
        """Share of the requests that ended without a label."""
        return (self.skipped + self.expired) / max(self.ended, 1)

    @property
    def has_shares(self) -> bool:
        """Whether enough requests have ended for shares to be of use."""
        return self.ended >= _FEWEST

    @property
    def is_problem(self) -> bool:
        """Whether intervals are much wider because of requests without a label."""
        return self.has_shares and self.worst_case_share > MISSING_SHARE

    @property
    def worst_case_share(self) -> float:
        """Share of the requests whose items are allowed to have any true class."""
        counts = {SKIPPED_CLASS: self.skipped, EXPIRED_CLASS: self.expired}
        return sum(counts[reason] for reason in self.worst_case) / max(self.ended, 1)


def unanswered_requests(settings: ModelSettings, ledger: OutcomeLedger) -> UnansweredRequests:
    """What is known of the requests of one model that ended without a label."""
    by_reason = ledger.ended_by_reason()
    skipped, expired = by_reason[SKIPPED_CLASS], by_reason[EXPIRED_CLASS]
    requests = ledger.ended_requests(_NEWEST)
    skip, expiry = (_dependence(requests, reason) for reason in (SKIPPED_CLASS, EXPIRED_CLASS))
    treatments = {
        SKIPPED_CLASS: (settings.unanswered.skipped, skip),
        EXPIRED_CLASS: (settings.unanswered.expired, expiry),
    }
    worst_case = frozenset(
        reason for reason, given in treatments.items() if by_reason[reason].any() and _is_worst_case(*given)
    )
    return UnansweredRequests(
        ended=sum(int(counts.sum()) for counts in by_reason.values()),
        skipped=int(skipped.sum()),
        expired=int(expired.sum()),
        skip_dependence=skip,
        expiry_dependence=expiry,
        worst_case=worst_case,
        ended_by_score=np.sum(list(by_reason.values()), axis=0),
        unanswered_by_score=skipped + expired,
        any_class=_any_class(worst_case, ledger),
    )


def _any_class(worst_case: frozenset[int], ledger: OutcomeLedger) -> frozenset[int]:
    """What is in place of a class where any is allowed for, if these requests may have any.

    Of items that nobody requested, these are those without a label in a census, or in a sample. Where nothing
    is known of how items are chosen, requests tell.
    """
    if ledger.unrequested is None:
        return worst_case
    found = worst_case.union(*(OF_REQUESTS[reason] for reason in worst_case))
    return found | ABSENT if ledger.samples_traffic else found


def _is_worst_case(treatment: Treatment, dependence: float) -> bool:
    return treatment == "worst_case" or (treatment == "tested" and dependence >= _EVEN_ODDS)


def _dependence(requests: EndedRequests, reason: int) -> float:
    """Probability that it depends on the item whether a request ends like that; 0.5 if nothing is known.

    Two things can tell, each by itself: whether it depends on the score, in the same group and at about the
    same time; and whether labels of later attempts are as often the predicted class as those of first ones.
    """
    ended = requests.reasons == reason
    if not ended.any():
        return _EVEN_ODDS
    blocks = np.arange(len(ended)) // _BLOCK
    strata = np.unique(np.stack((requests.groups, blocks)), axis=1, return_inverse=True)[1].ravel()
    found = [log_bayes_factor(ended, ranks(requests.scores), strata)]
    if reason == EXPIRED_CLASS:
        answered = requests.is_answered
        later = (requests.attempts[answered] > 1).astype(np.float64)
        found.append(log_bayes_factor(requests.correct[answered], later, requests.groups[answered]))
    return float(special.expit(max([each for each in found if each], default=0.0)))
