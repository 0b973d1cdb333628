"""Write docs/performance.md: tables of what the other benchmarks measured, and how to size a deployment.

Every figure on the page is computed from the JSON files in benchmarks/results, one for each benchmark.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from service.app.docgen.generated_files import add_check_option, write_or_check

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"

_STREAMS = ("--streams", "small", "avro", "spread", "packed", "inference", "arrow")
_MANY_GROUPS = ("--partitions", "4", "--predictions", "1000000")
COMMANDS: dict[str, list[str]] = {
    "ingest": ["benchmarks.ingest", *_STREAMS, "--predictions", "1000000"],
    "clients": ["benchmarks.clients"],
    "parsers": ["benchmarks.parsers"],
    "processes": ["benchmarks.processes"],
    "processes_fast": ["benchmarks.processes", "--fast-fetch"],
    "flushes": ["benchmarks.flushes"],
    "attributes": ["benchmarks.attributes"],
    "memory": ["benchmarks.memory"],
    "memory_classes": ["benchmarks.memory", *_MANY_GROUPS, "--stream", "classes"],
    "memory_values": ["benchmarks.memory", *_MANY_GROUPS, "--stream", "values"],
    "recovery": ["benchmarks.recovery"],
    "startup": ["benchmarks.startup"],
    "rounds": ["benchmarks.rounds"],
    "rounds_stream": ["benchmarks.rounds", "--stream", "classes"],
}
UTILISATION = 0.6
"""Part of a core that is planned with; the rest is for peaks and for catching up."""

SIZED_CELLS, SIZED_ITEMS = 20_000, 50_000
"""Of the model that Redis is sized for, by default: its cells, and pooled items of a partition."""

POOL_CELLS, POOL_CLASSES = 1_000, 100
"""Of the measurements that differ in pooled items alone."""

CELL_BYTES = 24
FLUSH_RECORDS, FLUSH_SECONDS = 50_000, 1.0
"""Of the settings, by default."""

RATES = (10_000, 100_000, 1_000_000, 10_000_000)
"""Predictions a second that are sized for."""

Figures = dict[str, Any]


def run(name: str) -> None:
    """Run one benchmark, and keep its figures."""
    done = subprocess.run(
        [sys.executable, "-m", *COMMANDS[name], "--json"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{COMMANDS[name][0]} failed:\n{done.stderr[-2_000:]}")
    RESULTS.mkdir(exist_ok=True)
    measured = json.dumps(json.loads(done.stdout), indent=1)
    (RESULTS / f"{name}.json").write_text(measured + "\n", encoding="utf-8")
    (RESULTS / "machine.json").write_text(json.dumps(_machine(), indent=1) + "\n", encoding="utf-8")


def _machine() -> dict[str, str]:
    measured = [line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line]
    models = [what.strip() for name, what in measured if name.strip() == "model name"]
    names = ("kafka-python", "redis", "msgspec", "numpy")
    return {
        "processor": f"{len(models)} cores, {models[0]}",
        "python": platform.python_version(),
        "libraries": ", ".join(f"{name} {version(name)}" for name in names),
    }


def page(results: Path = RESULTS) -> str:
    """The page's text."""
    measured = {name: json.loads((results / f"{name}.json").read_text()) for name in ("machine", *COMMANDS)}
    parts = [
        _HEAD.format(**measured["machine"]),
        _ingest(measured["ingest"]),
        _limits(measured["ingest"], measured["clients"], measured["parsers"]),
        _processes(measured["processes"], measured["processes_fast"]),
        _flushes(measured["flushes"]),
        _attributes(measured["attributes"]),
        _memory(measured["memory"], [measured["memory_classes"], measured["memory_values"]]),
        _recovery(measured["recovery"]),
        _startup(measured["startup"]),
        _rounds(measured["rounds"], measured["rounds_stream"]),
        _sizing(measured),
    ]
    return "\n\n".join(parts) + "\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown; numbers stand on the right."""
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(lines)


_HEAD = """# Performance

After reading this page you can size a deployment, and you know what each part of Credence costs. `python -m
benchmarks.page` generates the page from the files in `benchmarks/results`. `python -m benchmarks.page --run` measures
everything again (half an hour).

All measurements ran on {processor}, which broker, Redis, producer and consumers shared. Versions: Python {python},
{libraries}.
Apache Kafka and redis-server (append-only file, fsync every second) ran on the same machine.

On a shared machine, rates vary by half from hour to hour. Ratios are reliable if their readings took turns in one run,
as in the first table. Readings of several processes followed one another, so their ratios are less certain."""


def _command(name: str) -> str:
    return f"`python -m {' '.join(COMMANDS[name])}`"


def _ingest(measured: Sequence[Figures]) -> str:
    rows = []
    for stream in measured:
        bare = stream["readers"]["poll"]
        for reader, figures in stream["readers"].items():
            rows.append(
                (
                    f"{stream['stream']}, {stream['record_bytes']:,.0f} B: {reader}",
                    f"{figures['rate']:,.0f}",
                    f"{figures['rate'] / bare['rate']:.0%}",
                    f"{figures['cpu_us']:.2f}",
                    f"{bare['cpu_us'] / figures['cpu_us']:.0%}",
                    f"{figures['stored_share']:.1%}" if figures["stored_share"] else "",
                )
            )
    heads = (
        "record and reader",
        "predictions/s",
        "rate / poll",
        "CPU per prediction, us",
        "poll's CPU / own",
        "flushes",
    )
    return f"""## Ingest

{_command("ingest")} compares one Credence process with a bare `poll()` loop of the same client on the same topic.

The client's own Python code is most of the cost of small records. Credence always reduces it by collecting garbage
rarely and by keeping freed memory for the next batch. Unless `kafka.fast_fetch` is `false`, it also receives responses in
large pieces and parses record batches in one loop. This replaces parts of the client library. So it is used only with
versions of the library for which tests show that it reads exactly as the library does, and after a self-test at start;
otherwise a warning is logged, and the library's own code stays ([a patch of the library](kafka-python/README.md)).

The first two fifths of a stream, in which the pool fills, are not measured.

{table(heads, rows)}

`poll and decode` decodes and validates predictions, and does nothing else. Arrow batches have five attributes, the
others two. `flushes` is the share of time that flushes take: they
encode changes, write them to Redis, and sometimes ask Kafka for the topic's id."""


def _limits(ingest: Sequence[Figures], clients: Figures, parsers: Sequence[Figures]) -> str:
    (packed,) = (stream["readers"] for stream in ingest if stream["stream"] == "100 in a record")
    rest = packed["credence, fast fetch"]["cpu_us"] - packed["poll and decode"]["cpu_us"]
    received = [(client, f"{row['cpu_us']:.2f}") for client, row in clients.items()]
    parsed = [(row["stream"], row["library"], row["what"], f"{row['us']:.2f}") for row in parsers]
    return f"""## Where the next limit is

**One prediction in a record:** the client takes most of the time. {_command("clients")} reads one topic with each client
in turn:

{table(("client", "CPU per record, us"), received)}

librdkafka, in C, takes least. Credence does not use it: at which offset a truncated log diverges, it says only in the text
of an error. Credence needs that offset to lose no prediction and to count none twice.

**Many in a JSON array, or many probabilities:** parsing takes most of the time. {_command("parsers")} compares libraries.
None of them makes columns as fast as msgspec makes objects, and msgspec alone checks types. Only to parse long lists of
probabilities would simdjson be faster.

{table(("stream", "library", "what it makes", "CPU per prediction, us"), parsed)}

After that, a prediction in a JSON array takes {rest:.1f} us more: for its time, its attributes, the hash of its item id,
checks against the model, and the tables. These are many small steps, of which none takes most.

**Arrow batches, Avro and responses of model servers** are read to columns, without an object per prediction. Their cost
is that of the records: with fewer rows in a record, each costs more."""


def _processes(own: Sequence[Figures], fast: Sequence[Figures]) -> str:
    rows = []
    for row, fast_row in zip(own, fast, strict=True):
        cells = [
            f"{figure:,.0f} ({figure / first:.2f} x)"
            for figure, first in (
                (row["poll"], own[0]["poll"]),
                (row["credence"], own[0]["credence"]),
                (fast_row["credence"], fast[0]["credence"]),
            )
        ]
        rows.append((row["processes"], *cells))
    heads = ("processes", "bare poll, records/s", "Credence, predictions/s", "with fast fetch")
    return f"""## Several processes

{_command("processes")}, also with `--fast-fetch`: consumers share four partitions, on two cores that the broker and
Redis need too. All have their partitions before they begin. The measurement covers the time in which all of them read:
from when the last one has read a tenth of its share until the first one has little left.

{table(heads, rows)}"""


def _flushes(measured: Sequence[Figures]) -> str:
    rows = [
        (
            f"{f['cells']:,} cells, {f['models']} {'model' if f['models'] == 1 else 'models'}, {f['pooled']} per class",
            f"{f['taking_us']:.2f}",
            f"{f['flush_ms']:.1f}",
            f"{f['redis_mb']:.1f}",
        )
        for f in measured
    ]
    heads = ("cells, models, pooled items", "ingest, us per prediction", "flush, ms", "Redis, MB")
    return f"""## Cells, models, pools

{_command("flushes")} passes batches of 5,000 predictions to the consumer's step, and flushes after each. In
production a flush follows after `kafka.flush_records` (50,000) records or `kafka.flush_seconds` (1 s), whichever is first. So its
cost is spread over more predictions.

All figures are for one topic partition. A cell is one class and one score bin, and a model has one class for every ten
cells. Labels are requested by class.

{table(heads, rows)}"""


def _attributes(measured: Sequence[Figures]) -> str:
    rows = [
        (
            f"{f['stream']}, {f['groups']:,} groups",
            f"{f['differing']}",
            f"{f['taking_us']:.1f}",
            f"{f['flush_ms']:.1f}",
            f"{f['tables_mb']:.1f}",
            f"{f['redis_mb']:.1f}",
            f"{f['process_mb']:.0f}",
        )
        for f in measured
    ]
    heads = (
        f"{measured[0]['predictions']:,} predictions, {measured[0]['partitions']} partitions",
        "groups that differ from an exact count",
        "ingest, us per prediction",
        "flush, ms",
        "tables by the formula, MB at most",
        "Redis, MB",
        "process, MB",
    )
    return f"""## Many attributes, classes and values

{_command("attributes")} compares the traffic of every group with an exact count, and measures what the groups cost.
There is a grouping by each attribute and one by class. The values of attributes are correlated and follow Zipf's law.
Batches of 5,000 predictions are passed to the consumer's step, with a flush after each. The cost of a prediction grows
with the number of attributes, and with the number of new combinations of their values.

{table(heads, rows)}"""


def _memory(measured: Figures, many_groups: Sequence[Figures]) -> str:
    sizes = measured["resident_mb"]
    rows = [
        (f"{count:,}", f"{size:.0f}")
        for count, size in list(zip(measured["predictions"], sizes, strict=True))[1::3]
    ]
    of_streams = [
        (one["stream"], f"{max(one['resident_mb']):.0f}", f"{one['redis_mb']:.0f}") for one in many_groups
    ]
    last = many_groups[0]
    return f"""## Memory

{_command("memory")}: a consumer reads {measured["predictions"][-1]:,} predictions, each with a new item id, into 20,000
cells. After the first quarter its memory grew by at most {measured["growth"]:.1%}.

{table(("predictions", "MB in use"), rows)}

{_command("memory_classes")}, and with `--stream values`: one consumer reads
{last["predictions"][-1]:,} predictions of a model with many groups from {last["partitions"]} partitions. The classes, or the attribute with
10,000 values, request labels, so each of these groups has a pool.

{table(("stream", "consumer, MB at most", "Redis, MB at most"), of_streams)}"""


def _recovery(measured: Figures) -> str:
    rows = [
        ("predictions per second before the kill", f"{measured['rate_before']:,.0f}"),
        ("from the restart to the first prediction, s", f"{measured['first_seconds']:.1f}"),
        ("to full speed, s", f"{measured['full_speed_seconds'] or measured['caught_up_seconds']:.1f}"),
        (f"to the end of {measured['unread']:,} unread records, s", f"{measured['caught_up_seconds']:.1f}"),
        ("predictions in the topic", f"{measured['predictions']:,}"),
        ("counted in Redis at the end", f"{measured['counted']:,}"),
    ]
    return f"""## Recovery

{_command("recovery")} kills a consumer (SIGKILL) while it reads, and restarts it at once. The consumer has a
`kafka.instance_id`, so its partitions wait for it. Without one, they move after `kafka.session_timeout_seconds`.

{table(("", "measured"), rows)}"""


def startup_table(measured: Sequence[Figures]) -> str:
    """Wall and CPU time of commands, in Markdown.

    Args:
        measured: figures of every command.
    """
    rows = [(f"`{row['command']}`", f"{row['wall_s']:.2f}", f"{row['cpu_s']:.2f}") for row in measured]
    return table(("command", "wall time, s", "CPU time, s"), rows)


def _startup(measured: Sequence[Figures]) -> str:
    return f"""## Commands

{_command("startup")} measures commands that need no server, from start to end, and Python alone. Wall time is the
median, and CPU time the minimum. `check` reads `deploy/compose/credence.yaml`.

{startup_table(measured)}"""


def _rounds(measured: Sequence[Figures], of_stream: Sequence[Figures]) -> str:
    rows = [
        (
            f"{row['groups']:,.0f} groups, {row['outcomes']:,.0f} labels",
            f"{row['round_median_ms']:,.0f}",
            f"{row['round_cpu_ms']:,.0f}",
            f"{row['cold_start_s']:.1f}",
            f"{row['redis_mb']:,.1f}",
            f"{row['process_mib']:,.0f} / {row['process_most_mib']:,.0f}",
        )
        for row in measured
    ]
    heads = (
        "",
        "round, ms",
        "CPU of a round, ms",
        "first round, s",
        "labels in Redis, MB",
        "process, MiB / peak",
    )
    stream_rows = [
        (
            f"{row['groups']:,} groups, {row['outcomes']:,} labels",
            f"{row['round_cpu_ms']:,.0f}",
            f"{row['round_median_cpu_ms']:,.0f}",
            f"{row['round_most_cpu_ms']:,.0f}",
        )
        for row in of_stream
    ]
    stream_heads = ("", "CPU of a round, ms: minimum", "median", "maximum")
    most = _most_labels(measured)
    return f"""## Rounds and labels

{_command("rounds")} measures a round of the leader: it updates the snapshot and issues label requests. The
process is warm, and the answers to the requests of the last round are new. The model has one attribute with one value per group,
ten score bins, ten classes, a half-life of labels, an estimation and an identification. Wall time is the median, and
CPU time the minimum. The first round of a process reads all outcomes. Redis writes no append-only file here.

{table(heads, rows)}

{_command("rounds_stream")} measures the same for another model. It has 1,000 classes, ten score bins, and
attributes of 50, 20 and 10 values. There is a grouping by class and one by each attribute. Labels are requested by class and by the
first attribute. The predictions came over eight days, so that traffic has epochs. A round evaluates all groupings.

{table(stream_heads, stream_rows)}

**What a round depends on.** Estimates take no longer with more labels, because labels are summed by cell, requesting
assessment and true class. Most of the time is spent on the groups: fitting the learned prior, joint draws for the ranks,
and intervals. With few labels, more of the prior's grid is plausible, so rounds take longer. Evidence and change points
use single labels, but only those of groups whose labels changed since the last round. Few steps grow with all labels:
they select labels and find their ages and epochs. These take {_thousand_labels_ms(measured):.2f} ms for every thousand labels.

**Start.** A process reads the outcome stream in pages of 10,000, and answers health checks meanwhile. It is ready once it
has read all.

**Labels in Redis** are measured as the growth of `used_memory`: outcomes, records of closed requests, budgets and tallies.
Traffic and pools are not included, because they do not depend on labels. At {most["outcomes"]:,.0f} labels, each takes
{most["redis_bytes"]:,.0f} bytes. Its entry in the outcome stream takes {most["stream_bytes"]:,.0f} of these; the stream keeps
the newest `bounds.outcomes`. The rest is the record of its request. It is kept while the outcome is stored or may be
corrected (`bounds.correction_days`).

- An entry contains names as text: item id, classes, attributes, assessment, grouping, group and annotator. They have 100
  characters here. Longer names take correspondingly more.
- Records are in 16,384 hashes. By default, Redis packs hashes of up to 512 entries of up to 64 bytes. With a lower
  `hash-max-listpack-entries` (before Redis 7 `hash-max-ziplist-entries`), a record takes about twice the memory.
- With few labels, each hash has few records to share its overhead.
- A revision adds an entry as large as the outcome's. So does a request that is skipped or expires, in place of a label.

**Labels in a process** take {most["process_bytes"]:,.0f} bytes each, including everything that a first round allocates and
keeps. Outcomes are stored in columns, 70 bytes each. Every different combination of cell, assessment and outcome takes
another 130 bytes or so. Outcomes leave the process when the stream is trimmed. Unused combinations are removed whenever as
many outcomes have left as remain. So a process that runs forever holds `bounds.outcomes` labels plus a quarter."""


def _thousand_labels_ms(rounds: Sequence[Figures]) -> float:
    """What a thousand labels more add to a round's CPU, between the two rounds of most labels and alike groups."""
    most = _most_labels(rounds)
    fewer = _most_labels(
        [r for r in rounds if r["groups"] == most["groups"] and r["outcomes"] < most["outcomes"]]
    )
    added = most["round_cpu_ms"] - fewer["round_cpu_ms"]
    return float(1_000 * added / (most["outcomes"] - fewer["outcomes"]))


def _most_labels(rounds: Sequence[Figures]) -> Figures:
    return max(rounds, key=lambda row: (row["outcomes"], -row["groups"]))


def _sizing(measured: dict[str, Any]) -> str:
    cpu = {s["stream"]: (s["readers"], s["record_bytes"]) for s in measured["ingest"]}
    (small, small_bytes), (packed, packed_bytes) = cpu["one in a record"], cpu["100 in a record"]
    arrow, arrow_bytes = cpu["1,000 in an Arrow batch"]
    ways = {
        "one in a record": (small["credence"]["cpu_us"], small_bytes, 1),
        "the same, fast fetch": (small["credence, fast fetch"]["cpu_us"], small_bytes, 1),
        "100 in a record": (packed["credence"]["cpu_us"], packed_bytes / 100, 100),
        "1,000 in an Arrow batch": (arrow["credence"]["cpu_us"], arrow_bytes / 1_000, 1_000),
    }
    item_bytes = _pooled_item_bytes(measured["flushes"])
    shard_bytes = SIZED_CELLS * CELL_BYTES + SIZED_ITEMS * item_bytes
    rows = []
    for rate in RATES:
        for way, (us, size, of_record) in ways.items():
            processes = _ceil(rate * us / 1e6 / UTILISATION)
            flushes = max(processes / FLUSH_SECONDS, rate / of_record / FLUSH_RECORDS)
            rows.append(
                (
                    f"{rate:,} /s, {way}",
                    f"{rate * us / 1e6:,.2f}",
                    f"{processes:,}",
                    f"{rate * size * 8 / 1e9:,.2f}",
                    f"{processes * shard_bytes / 1e9:,.2f}",
                    f"{flushes * SIZED_CELLS * CELL_BYTES * 8 / 1e9:,.2f}",
                )
            )
    most = _most_labels(measured["rounds"])
    heads = (
        "predictions", "cores in use", "consumer processes", "from Kafka, Gbit/s",
        "Redis, traffic and pool, GB", "to Redis, Gbit/s",
    )  # fmt: skip
    return f"""## What to size for

All figures in this section are computed from the tables above.

**Consumers.** A process uses one core. Cores in use are predictions per second x CPU per prediction. The number of
processes is that divided by {UTILISATION:.0%}, which leaves room for peaks and for catching up. Have at least as many
partitions as processes. Packing matters most: producers that put many predictions in a record save most of the cost, and
[Arrow batches](connect.md#arrow-batches) save most of the rest. Then the network from Kafka is the next limit. The Redis columns are for a model with {SIZED_CELLS:,} table entries and {SIZED_ITEMS:,} pooled items, one partition per process, and
default flushes.

{table(heads, rows)}

**Redis, per model: traffic.** Add rows x columns x {CELL_BYTES} bytes over its tables (8 bytes in tables of counts only), for
every partition. `credence check` lists the tables, and `bounds.table_bytes` limits their sum:

| table of | rows | columns | bytes per entry |
| --- | --- | --- | ---: |
| all traffic | 1 | classes x score bins | {CELL_BYTES} |
| an attribute | values, at most `bounds.attribute_values` + 2 | score bins | {CELL_BYTES} |
| the same, if a grouping is by class | the same | classes | 8 |
| the same, if there is a challenger | the same | 3 | {CELL_BYTES} |
| votes, or agreement with a challenger | patterns + 2 | classes x score bins | {CELL_BYTES} |

An attribute of 1,000 values with ten score bins takes 0.24 MB per partition, and 0.08 MB more with ten classes. A process
that computes estimates holds the merged tables of all partitions. So it has a row for every value that any partition has.
Each mark of traffic stores the counts of all tables of a partition, compressed in Redis: 21 kB for an attribute of 1,000
values, ten bins and two classes. A partition has about 30 marks after a week and 70 after three years, or twice as many until
it has `drift.reference_predictions`. A process holds about 25 of them, merged, with 8 bytes per entry.

**Redis, per model: the rest.**

- Pools take at most `bounds.pool_items` x partitions x {item_bytes:.0f} bytes (measured). If labels are requested for
  more groups than that, their number replaces `bounds.pool_items`. The entry in a group's sketch takes 16 of these bytes.
  Payloads, longer ids and attributes add to them.
- Labels take {most["redis_bytes"]:,.0f} bytes each ([details](#rounds-and-labels)).
- A flush writes changed pages of tables and new pool items. With a higher `kafka.flush_seconds` and
  `kafka.flush_records`, it writes less often.
- With many partitions, use a Redis Cluster. All keys of a model are on one node, so a cluster distributes models.

**Rounds.** The leader takes {most["process_mib"]:,.0f} MiB with {most["outcomes"]:,.0f} labels. The cost of a round depends on
groups and new labels, not on predictions. One replica and a standby serve any rate.

**Network.** Label requests and labels are few, compared with what consumers read from Kafka and write to Redis."""


def _pooled_item_bytes(flushes: Sequence[Figures]) -> float:
    """What more pooled items took more of Redis, per item."""
    sizes = {f["pooled"]: f["redis_mb"] for f in flushes if f["cells"] == POOL_CELLS and f["models"] == 1}
    few, many = min(sizes), max(sizes)
    item_bytes: float = 1e6 * (sizes[many] - sizes[few]) / (POOL_CLASSES * (many - few))
    return item_bytes


def _ceil(number: float) -> int:
    return -int(-number // 1)


def main() -> int:
    """Write the page, check it, or measure first; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", nargs="*", choices=COMMANDS, help="measure these anew, or all, before")
    add_check_option(parser)
    options = parser.parse_args()
    for name in COMMANDS if options.run == [] else options.run or ():
        print(f"measuring: {' '.join(COMMANDS[name])}", flush=True)
        run(name)
    return write_or_check(PAGE.parent, {PAGE.name: page()}, check=options.check)


if __name__ == "__main__":
    sys.exit(main())
