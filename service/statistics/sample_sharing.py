"""Sample sharing: an ensemble and its members evaluated with the same labels, without bias.

Every member is judged by a sample of the items that it calls positive. Most of what one calls positive the
others do too, so most labels can serve several.

Source: "How to reduce annotation when evaluating AI systems", presented at the European Conference on Machine
Learning. A sample S_P of the positives A_P of the parent (the ensemble's own decision) comes first, then
child by child with the positives A_C

- S+, the intersection of S_P and A_C;
- S-, drawn from A_C without A_P, with |S-| / |S+| = |A_C without A_P| / |A_C and A_P|;
- S_remain, drawn from the rest of A_C until there are n;
- all of it mixed: `reshuffle` permutes it, `resample` draws from it with replacement.

The source leaves open what children share with one another. Here one random order of all items decides every
draw: a draw "at random from a set" takes the first of the set in this order. Its restrictions to A_P and to
the complement are uniform and independent; a child's sample is a function of these and of separate random
numbers, which are the same for all children. So each child's sample is distributed as if no other child
existed, but children take the same items wherever they draw from the same places.

The third mixing, `patterns`, takes from every vote pattern (the set of members that call an item positive)
the first n times the pattern's share of a member's positives, rounded at random: the fewest labels of any
such scheme, except for rounding (docs/ensembles.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from service.domain.arrays import Flags, Indices, Ints

Mixing = Literal["reshuffle", "resample", "patterns"]

MOST_MEMBERS = 63  # bits of a mask beside its sign


@dataclass(frozen=True)
class SharingPlan:
    """Which items every member's estimate uses, and which of them are to be labelled."""

    # positions by member, parent first, in mixed order, resampled ones repeated; empty without positives
    items: tuple[Indices, ...]
    to_label: Indices  # positions of the items that are used, ascending

    @property
    def cost(self) -> int:
        """Labels to ask for."""
        return len(self.to_label)


def pattern_masks(votes: Flags) -> Ints:
    """Vote pattern of every item [N]: bit m is set where member m calls it positive, by votes [N, M + 1]."""
    return votes @ (np.int64(1) << np.arange(votes.shape[1], dtype=np.int64))


def plan_sharing(votes: Flags, n: int, rng: np.random.Generator, *, mixing: Mixing) -> SharingPlan:
    """Choose the items by which an ensemble and its members are judged, n for every member.

    The mean outcome over a member's items is an unbiased estimate of the mean over all its positives, with
    any mixing: each of them is equally likely to be used. A member with n positives or fewer uses all of
    them. `votes` say whether a member calls an item positive [N, 1 + M], the parent first. More generally:
    whether the item is in the set over which the member's metric is taken.
    """
    patterns = pattern_masks(votes)
    order = rng.permutation(len(patterns))
    called = votes[order]
    if mixing == "patterns":
        samples = _by_patterns(called, patterns[order], n, rng)
    else:
        samples = _by_parent(called, n, rng, resample=mixing == "resample")
    items = tuple(order[places] for places in samples)
    return SharingPlan(items, np.unique(np.concatenate(items)))


def _by_parent(called: Flags, n: int, rng: np.random.Generator, *, resample: bool) -> list[Indices]:
    """Positions in the random order of every member's sample: the parent's, then each child's from it."""
    parent = called[:, 0]
    sample = np.flatnonzero(parent)[:n]
    shared = np.zeros(len(called), np.bool_)
    shared[sample] = True
    samples = [rng.permutation(sample)]
    seed = int(rng.integers(2**63))
    for child in called.T[1:]:
        # The same random numbers for every child: the more alike children are, the more they share.
        own = np.random.default_rng(seed)
        both, alone = np.flatnonzero(child & parent), np.flatnonzero(child & ~parent)
        if len(both) + len(alone) <= n:
            samples.append(own.permutation(np.concatenate((both, alone))))
            continue
        from_both = _from_both(int(shared[both].sum()), len(both), len(alone), n, own)
        combined = np.concatenate((both[:from_both], alone[: n - from_both]))
        samples.append(own.choice(combined, n) if resample else own.permutation(combined))
    return samples


def _from_both(shared: int, both: int, alone: int, n: int, rng: np.random.Generator) -> int:
    """How many of a child's n items, below both + alone, are positives of the parent too.

    `shared` is |S+|; child and parent call `both` items positive, the child alone `alone`. If S+ is more than
    a proportional sample of n would have of these, some of it is left out: the number is proportional,
    rounded at random. Else S- follows, and S_remain from the rest of both parts.

    |S-| = |S+| alone / both is rounded to s or s + 1. Rounded so that it is right on average, S_remain would
    not be: its size depends on s. With d the fraction that is rounded off and L = both + alone - |S+| - s,
    every positive of the child is equally likely to be used if s + 1 has the probability d (L - 1) / (d (L -
    1) + (1 - d) L): it equates both parts' chances to be left out.
    """
    whole, rest = divmod(n * both, both + alone)
    fair = whole + int(rng.random() * (both + alone) < rest)
    if shared * (both + alone) >= n * both:
        return fair
    minus, rest = divmod(shared * alone, both)
    left = both + alone - shared - minus
    up, down = rest * (left - 1), (both - rest) * left
    minus += int(rng.random() * (up + down) < up)
    remain = n - shared - minus
    return shared + int(rng.hypergeometric(both - shared, alone - minus, remain))


def _by_patterns(called: Flags, patterns: Ints, n: int, rng: np.random.Generator) -> list[Indices]:
    """Positions in the random order of every member's sample: its share of every pattern.

    Rounded by systematic sampling, with one start for all members: each pattern gives its expected number,
    rounded up or down, and members with the same positives take the same items.

    Patterns of which no member needs a whole item are one stratum, of which a member takes the first of its
    own. Rounded one by one, they would be rounded up for different members in different places.
    """
    _, first, numbered, sizes = np.unique(
        patterns, return_index=True, return_inverse=True, return_counts=True
    )
    positives = called.sum(axis=0)
    needed = sizes * np.where(called[first], np.minimum(n / np.maximum(positives, 1), 1.0), 0.0).max(axis=1)
    # In the order in which they first appear, patterns stay where they are whatever the children's order.
    strata = np.where(needed < 1, len(called), first)[numbered]
    start = rng.random()
    samples = []
    for member, size in enumerate(positives):
        places = np.flatnonzero(called[:, member])
        _, own, held = np.unique(strata[places], return_inverse=True, return_counts=True)
        ends = np.cumsum(held)
        # Multiplied first, so that the last quotient is exact, and n items are taken.
        take = np.diff(np.floor(ends * min(n, size) / max(size, 1) + start), prepend=0.0)
        rank = np.empty(len(places), np.intp)
        rank[np.argsort(own, kind="stable")] = np.arange(len(places)) - np.repeat(ends - held, held)
        samples.append(rng.permutation(places[rank < take[own]]))
    return samples
