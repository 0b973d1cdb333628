"""Which options which task takes. One that would change nothing is refused, lest it seem to."""

from __future__ import annotations

import argparse

from service.domain.errors import RecordingError
from service.replay.options import challenge, drift, ensemble, performance
from service.replay.options.parser import ESTIMATION

_OF_GROUPS = (
    *("metric", "grouping", "superclasses", "score_bins", "binning"),
    *("prior", "policy", "budget", "interval", "region"),
)
_OF_ONE_CLASS = ("positive_class", "labels", "interval")

_TAKEN = {
    ESTIMATION: _OF_GROUPS,
    "identification": (*_OF_GROUPS, "top_m", "extreme", "costs"),
    "comparison": _OF_GROUPS,
    performance.TASK: (*_OF_ONE_CLASS, "threshold", "target", "decision_values"),
    ensemble.TASK: (*_OF_ONE_CLASS, "ensemble"),
    challenge.TASK: ("region", "interval"),
    drift.TASK: (
        *("grouping", "superclasses", "score_bins", "binning", "interval"),
        *("drift", "points", "window", "half_life", "run_length", "alpha", "reference"),
    ),
}
"""By task, beside those that all take, such as --runs."""

_OF_INPUTS = ("after", "mixed", "groups", "per_label", "score_bins", "binning", "alpha")
"""Of the task drift, where inputs change."""

_BY_THE_PAPER = ("paper", "superclasses", "top_m")
"""Its tables are of several tasks, so --paper is in the place of --task."""


def refuse_what_is_not_taken(options: argparse.Namespace) -> None:
    """Refuse options that would seem to change something.

    Args:
        options: that were given; None or False where one was not.

    Raises:
        RecordingError: the task does not take one of them.
    """
    what, taken = f"the task {options.task}", _TAKEN[options.task]
    if options.paper and options.task == ESTIMATION:
        what, taken = "--paper", _BY_THE_PAPER
    if options.task == drift.TASK:
        what = f"{what} {'with' if options.after else 'without'} --after"
        taken = _OF_INPUTS if options.after else taken
    for name in dict.fromkeys(
        name for names in (_BY_THE_PAPER, _OF_INPUTS, *_TAKEN.values()) for name in names
    ):
        given = getattr(options, name)
        if name not in taken and given is not None and given is not False:
            raise RecordingError(f"--{name.replace('_', '-')}", f"{what} does not take it; leave it out")
