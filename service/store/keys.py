"""Names of all Redis keys, and what they hold.

All keys of one model share the hash tag `{model}`, so every script touches one slot of a
Redis Cluster. Keys with a layout in their name depend on the classes and the half-life of traffic: changed ones
start new keys; `credence layouts remove` removes the old ones.

| key | type | holds | lifetime |
| --- | --- | --- | --- |
| `P:{m}:L:partitions` | set | partitions that have a shard | the layout |
| `P:{m}:L:shard:<p>` | hash | `next_offset`, `topic_id` (of the topic that it is of), `partition_count` (of partition 0: how many there were at first), `flush_id`, `landmark` (s), `newest_record` (s; time of the newest record up to there), `newest_prediction` (s; arrival of the model's newest prediction), `drawn_base` (entries ever trimmed from `drawn`), `clipped` (JSON: predictions ever with a clipped time, by direction) | the layout |
| `P:{m}:L:traffic:<p>` | hash | pages of the tables of traffic (`service/store/traffic_pages.py`) | the layout |
| `P:{m}:L:sums:<p>` | hash | predicted class index -> packed class-probability sums | the layout |
| `P:{m}:L:pool:<p>` | hash | pool id, NUL, group -> sketch: bound, then priority and hash of every pooled item (`service/domain/grouping_pool.py`) | the layout |
| `P:{m}:L:items:<p>` | hash | hash of an item -> pool record (msgpack) | while a sketch holds it |
| `P:{m}:L:drawn:<p>` | list | pool id, NUL, group, hash of drawn items, for the owner to take out of its sketches | until acknowledged by a flush |
| `P:{m}:L:marks:<p>` | hash | mark of a time: since and until when the counts stayed the same (s), and predictions -> counts of every table (zlib of MessagePack; `service/domain/traffic_counts.py`) | the layout; older ones are rarer (`service/domain/traffic_marks.py`) |
| `P:{m}:L:drift` | hash | `verdicts`: groups that have drifted (MessagePack; `service/store/drift_verdicts.py`); `pins`: times whose marks the reference needs (s; JSON) | the layout |
| `P:{m}:asked:<n>` | hash | digest of a request's id -> its record, of every request ever made (`service/store/request_registry.py`) | the newest `outcomes` records; others while they may be corrected or their outcome is stored |
| `P:{m}:request:<id>` | hash | `attempt`, `assessment`, `window`, `fact` (msgpack), `message`; `reserve` (1), if the reserve paid; `shared:<n>`, assessment, NUL and fact of a further draw of the item; `item`, of a further label's request, the id of the item's outcome; `gold` (1), of a gold item; `barred`, once it was skipped, who may not label it | while open; of a further label `assessment`, `fact`, `item` and `barred` for `correction_days` after a skip |
| `P:{m}:open` | hash | request id -> JSON of assessment, group, predicted class, score, attempt | while open |
| `P:{m}:deadlines` | sorted set | request id, by deadline (s) | while open |
| `P:{m}:claimable:<vendor>` | sorted set | request id, by when the vendor may claim it (s); `inf` while its answer is on its way | while open, if issued to that vendor with a token |
| `P:{m}:claims` | hash | request id -> state, end of the lease (s) and claim id (`service/store/claims.py`); `=` and claim id -> request id | while open, if issued to that vendor |
| `P:{m}:annotation:<vendor>:<digest>` | string | JSON of request id and item id, by digest of a Label Studio annotation's identity; only the latest one of a request | `correction_days` |
| `P:{m}:annotated:<vendor>:<id>` | string | JSON: digest of the latest annotation of a request, its time (s), digest of its class | `correction_days` |
| `P:{m}:outbox` | hash | `request id/attempt` -> message to publish | until published |
| `P:{m}:labelled:<id>` | hash | of an item that several people may label, by the id of its first request: `assessment`, `fact`, `message`, `entry` (its outcome's id), `changes` (of its labels), `class:<n>` (digest of the n-th label's class), `by:<n>` (digests of who gave it, and corrected it) | until nobody else is asked; at most `correction_days` after its last label |
| `P:{m}:undecided` | sorted set | id of an item's first request, by its last label (s): whether somebody else is asked is to be decided | until then |
| `P:{m}:barred` | hash | request id -> digests of those who have labelled its item, 8 bytes each | while open, if not the item's first |
| `P:{m}:gold` | set | ids of the first requests of gold items that were requested, or that cannot be as the item was | for ever |
| `P:{m}:budget` | hash | `assessment|window` -> labels used; `assessment|bucket` -> what its token bucket holds | two windows with requests; for ever, where the budget does not renew |
| `P:{m}:tallies` | hash | `event|assessment` -> how often; `heard|assessment` -> time of the last answer (s); `unheard|assessment` -> requests issued since then that have expired | for ever |
| `P:{m}:outcomes` | stream | `assessment`, `fact` (msgpack), `label` (msgpack, or that the request was not answered), `attempt` if it was not the first; of a revision also `of`, the id of the outcome that it revises; of a further draw of the same item `of` and no `label`; of a further label of the item `item`, the id of its first one; of a gold item `gold` (1) | newest `outcomes`, about |
| `P:{m}:cohorts` | hash | hour of arrival -> counts of predictions that wait for unrequested labels; `level` of their sample, `depths`, `closed`, `dropped`, `delays`, `removed` (`service/store/lua/joins.lua`) | an hour's for `join_days` |
| `P:{m}:waiting` | hash | digest of an item -> prediction that waits for an unrequested label, or the label, or the id of its outcome | `join_days`; about `join_items` that wait, as many with an outcome, a tenth as many labels without a prediction |
| `P:{m}:cohort:<hour>` | list | digests of the items of an hour that wait | until the hour is closed |
| `P:{m}:closed:<hour>` | list | digests of its items after that | `join_days` |
| `P:{m}:early` | list | digests of items whose unrequested label came before the prediction, the oldest first | the newest tenth of `join_items` |
| `P:{m}:evidence` | hash | `state`: checkpoint of evidence, of labels that the stream trims (msgpack; `service/store/checkpoints.py`); `digest` of it | for ever |
| `P:{m}:counts` | hash | `state`: counts of predictions, label requests and draws by earlier times (msgpack; `service/store/count_histories.py`); `digest` of it | of the last day and a half |
| `P:{m}:reference` | hash | `since`, `until`, `set_at` (s; `-inf` since the beginning): the reference, where a window was set | until it is cleared |
| `P:{m}:fence` | string | highest leader epoch that has written | for ever |
| `P:{m}:labels:<p>` | hash | of a labels partition: `next_offset`, `topic_id`, `partition_count`, `batches` (applied ever) | for ever |
| `P:{leader}:lease`, `P:{leader}:epoch` | string | `holder|epoch`; the last epoch given | the lease; for ever |
| `P:{leader}:since` | string | when the lease was last taken, not renewed (s) | for ever |
| `P:{pipeline}:consumers` | hash | role, `/` and member -> JSON of a consumer's health (`service/store/consumer_health.py`) | until the consumer stops; a day after its last report |
| `P:{pipeline}:losses` | hash | role, kind, partition and time -> JSON of what a partition lost (`service/store/recent_reports.py`) | 65 minutes, then until the next report |
| `P:{pipeline}:intake` | hash | role, five minutes and a random id -> JSON of the messages that one consumer processed and refused | 65 minutes, then until the next report |
| `P:{pipeline}:vendor_calls` | hash | minute, process and vendor -> JSON of the calls to the vendor API, and of those that failed | 7 minutes, then until the next report |
| `P:{pipeline}:identity` | hash | `id`: of the data in this Redis, drawn when a consumer first finds none; `since` (s); `read:<topic>/<p>`: a mark of a partition that is read; `after:<id>`: when the loss of the data with this id was recorded (s) | for ever |
| `P:{pipeline}:reset` | hash | a loss of data: `since` (s), `kind`, `store` (the lost id), `labels_before`, `labels_now`, `records:<topic>/<p>` (the offset that was committed to Kafka) | until `credence reset acknowledge` |
| `P:{vendors}:idempotency:<vendor>:<digest>` | string | state and response of a call to the vendor API (`service/store/idempotency.py`) | 60 s and `vendor_api.wait_seconds` while it runs; a day after that, of the newest 50,000 |
| `P:{vendors}:idempotency:<vendor>:recent` | list | digests of completed calls, the newest first | a day after the last one |
| `P:{replay}:<place>` | string | `begun` or `replayed`: whether a dead letter's message was redriven, by its place in the source topic | 400 days |
| `P:hash_key` | string | the pool's hash key, hexadecimal, unless configured | for ever |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LAYOUT_DIGITS = 8
"""Hexadecimal digits of a layout."""


@dataclass(frozen=True)
class _Name:
    """Last part of a key's name, after the model and perhaps the layout."""

    text: str
    in_layout: bool = False

    def of(self, keys: ModelKeys) -> str:
        layout = f"{keys.layout}:" if self.in_layout else ""
        return f"{keys.prefix}:{{{keys.model}}}:{layout}{self.text}"


class _Key(_Name):
    """A key that a model has once: read from `ModelKeys`, it is its name."""

    def __get__(self, keys: ModelKeys, owner: type[ModelKeys]) -> str:
        return self.of(keys)


class _Keys(_Name):
    """Keys of one kind: read from `ModelKeys`, a function of the partition or id that each belongs to."""

    def __get__(self, keys: ModelKeys, owner: type[ModelKeys]) -> Callable[..., str]:
        return lambda *parts: ":".join([self.of(keys), *map(str, parts)])


@dataclass(frozen=True)
class ModelKeys:
    """Names of one model's keys under one layout of its traffic; the table above says what they hold."""

    prefix: str
    model: str
    layout: str

    partitions = _Key("partitions", in_layout=True)
    shard = _Keys("shard", in_layout=True)
    traffic = _Keys("traffic", in_layout=True)
    sums = _Keys("sums", in_layout=True)
    pool = _Keys("pool", in_layout=True)
    items = _Keys("items", in_layout=True)
    drawn = _Keys("drawn", in_layout=True)
    marks = _Keys("marks", in_layout=True)
    drift = _Key("drift", in_layout=True)

    asked = _Keys("asked")
    request = _Keys("request")
    open = _Key("open")
    deadlines = _Key("deadlines")
    claimable = _Keys("claimable")
    claims = _Key("claims")
    annotation = _Keys("annotation")
    annotated = _Keys("annotated")
    outbox = _Key("outbox")
    labelled = _Keys("labelled")
    undecided = _Key("undecided")
    barred = _Key("barred")
    gold = _Key("gold")
    budget = _Key("budget")
    tallies = _Key("tallies")
    outcomes = _Key("outcomes")
    cohorts = _Key("cohorts")
    waiting = _Key("waiting")
    cohort = _Keys("cohort")
    closed = _Keys("closed")
    early = _Key("early")
    evidence = _Key("evidence")
    counts = _Key("counts")
    reference = _Key("reference")
    fence = _Key("fence")
    labels = _Keys("labels")


def lease_key(prefix: str) -> str:
    """The leader's lease."""
    return f"{prefix}:{{leader}}:lease"


def epoch_key(prefix: str) -> str:
    """The last epoch that was given to a leader."""
    return f"{prefix}:{{leader}}:epoch"


def leader_since_key(prefix: str) -> str:
    """When the leader took its lease."""
    return f"{prefix}:{{leader}}:since"


def consumers_key(prefix: str) -> str:
    """The health of all consumers."""
    return f"{prefix}:{{pipeline}}:consumers"


def losses_key(prefix: str) -> str:
    """What the topics' partitions lost."""
    return f"{prefix}:{{pipeline}}:losses"


def intake_key(prefix: str) -> str:
    """Processed and refused messages, by five minutes."""
    return f"{prefix}:{{pipeline}}:intake"


def vendor_calls_key(prefix: str) -> str:
    """Calls to the vendor API, by minute."""
    return f"{prefix}:{{pipeline}}:vendor_calls"


def identity_key(prefix: str) -> str:
    """The id of the data in this Redis, and those of data that it lost."""
    return f"{prefix}:{{pipeline}}:identity"


def reset_key(prefix: str) -> str:
    """A loss of data that nobody has acknowledged."""
    return f"{prefix}:{{pipeline}}:reset"


def hash_key_key(prefix: str) -> str:
    """The pool's hash key, if the settings have none."""
    return f"{prefix}:hash_key"


def replay_key(prefix: str, place: str) -> str:
    """Whether the message at this place of a topic was redriven."""
    return f"{prefix}:{{replay}}:{place}"


def idempotency_key(prefix: str, vendor: str, digest: str) -> str:
    """State and response of one call of a vendor."""
    return f"{prefix}:{{vendors}}:idempotency:{vendor}:{digest}"
