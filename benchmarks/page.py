"""Write docs/performance.md: tables of what the other benchmarks measured, and what to size for.

Each benchmark's JSON stands in benchmarks/results; every figure on the page is made from these files.
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

COMMANDS: dict[str, list[str]] = {
    "ingest": ["benchmarks.ingest"],
    "processes": ["benchmarks.processes"],
    "processes_fast": ["benchmarks.processes", "--fast-fetch"],
    "flushes": ["benchmarks.flushes"],
    "attributes": ["benchmarks.attributes"],
    "memory": ["benchmarks.memory"],
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
    """Run one benchmark, and keep what it tells."""
    done = subprocess.run(
        [sys.executable, "-m", *COMMANDS[name], "--json"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{COMMANDS[name][0]} failed:\n{done.stderr[-2_000:]}")
    RESULTS.mkdir(exist_ok=True)
    told = json.dumps(json.loads(done.stdout), indent=1)
    (RESULTS / f"{name}.json").write_text(told + "\n", encoding="utf-8")
    (RESULTS / "machine.json").write_text(json.dumps(_machine(), indent=1) + "\n", encoding="utf-8")


def _machine() -> dict[str, str]:
    told = [line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line]
    models = [what.strip() for name, what in told if name.strip() == "model name"]
    names = ("kafka-python", "redis", "msgspec", "numpy")
    return {
        "processor": f"{len(models)} cores, {models[0]}",
        "python": platform.python_version(),
        "libraries": ", ".join(f"{name} {version(name)}" for name in names),
    }


def page(results: Path = RESULTS) -> str:
    """The page's text."""
    told = {name: json.loads((results / f"{name}.json").read_text()) for name in ("machine", *COMMANDS)}
    parts = [
        _HEAD.format(**told["machine"]),
        _ingest(told["ingest"]),
        _processes(told["processes"], told["processes_fast"]),
        _flushes(told["flushes"]),
        _attributes(told["attributes"]),
        _memory(told["memory"]),
        _recovery(told["recovery"]),
        _startup(told["startup"]),
        _rounds(told["rounds"], told["rounds_stream"]),
        _sizing(told),
    ]
    return "\n\n".join(parts) + "\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown; numbers stand on the right."""
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(lines)


_HEAD = """# Performance

What Credence costs, measured, and what to size for. The page is made by `python -m benchmarks.page` from the
files in `benchmarks/results`; `python -m benchmarks.page --run` measures everything again (half an hour).

Measured on {processor}, that broker, Redis, producer and consumers shared; Python {python}, {libraries};
Apache Kafka and redis-server (append-only file, fsync every second) on the same machine. Rates on a shared
machine move by half from hour to hour. Ratios of readings that took turns in one run hold: those of the first table
did. The readings of several processes followed one another, so their ratios are less certain."""


def _command(name: str) -> str:
    return f"`python -m {' '.join(COMMANDS[name])}`"


def _ingest(told: Sequence[Figures]) -> str:
    rows = []
    for stream in told:
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
    heads = ("record and reader", "predictions/s", "of poll", "CPU, us", "poll's CPU / own", "storing")
    return f"""## Taking predictions in

{_command("ingest")}: one process, beside a bare `poll()` loop of the same client over the same topic. The
client's own Python is most of the cost of small records. It is made less by a rare search for garbage and by keeping
freed memory for the next batch, always; and with `kafka.fast_fetch: true` by receiving answers in large pieces and
taking record batches apart in one loop. That is off by default, as it reaches into the client library: it is used only
with versions of it that are known, and after it has read samples exactly as the library does. Measured is what follows
the first two fifths of a stream, when the pool has filled.

{table(heads, rows)}

`poll and decode` parses and checks JSON, and does nothing else. `storing` is the part of the time that flushes take:
encoding what was taken in, putting it into Redis, and asking Kafka for the topic's id now and then."""


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

{_command("processes")}, and with `--fast-fetch`: consumers that share four partitions, on two cores that the
broker and Redis need too. All have their partitions before they begin. Measured is while all of them read: from when
the last one has read a tenth of its share until the first one has little left.

{table(heads, rows)}"""


def _flushes(told: Sequence[Figures]) -> str:
    rows = [
        (
            f"{f['cells']:,} cells, {f['models']} {'model' if f['models'] == 1 else 'models'}, {f['pooled']} a class",
            f"{f['taking_us']:.2f}",
            f"{f['flush_ms']:.1f}",
            f"{f['redis_mb']:.1f}",
        )
        for f in told
    ]
    heads = ("of one partition; pooled items", "taking in, us a prediction", "a flush, ms", "Redis, MB")
    return f"""## Cells, models, pools

{_command("flushes")}: batches of 5,000 predictions given to the consumer's step, a flush behind each. In service
a flush follows `kafka.flush_records` (50,000) records or `kafka.flush_seconds` (1 s), whichever is sooner,
so its cost is spread over more. Cells, pools and models are all of one topic partition; a model has a class for
every ten cells, and asks by class.

{table(heads, rows)}"""


def _attributes(told: Sequence[Figures]) -> str:
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
        for f in told
    ]
    heads = (
        f"{told[0]['predictions']:,} predictions, {told[0]['partitions']} partitions",
        "groups that differ from an exact count",
        "taking in, us a prediction",
        "a flush, ms",
        "tables by the formula, MB at most",
        "Redis, MB",
        "process, MB",
    )
    return f"""## Many attributes, classes and values

{_command("attributes")}: every group's traffic beside an exact count, and what it costs. A grouping is by each
attribute and by class; the values of attributes are correlated and follow Zipf's law. Batches of 5,000
predictions are given to the consumer's step, a flush behind each. What a prediction costs grows with the number
of attributes, and with how many of its combinations of values were not met before.

{table(heads, rows)}"""


def _memory(told: Figures) -> str:
    sizes = told["resident_mb"]
    rows = [
        (f"{count:,}", f"{size:.0f}")
        for count, size in list(zip(told["predictions"], sizes, strict=True))[1::3]
    ]
    return f"""## Memory

{_command("memory")}: a consumer over {told["predictions"][-1]:,} predictions with ever-new item ids and 20,000
cells. Behind the first quarter it grew by {told["growth"]:.1%} at the most.

{table(("predictions", "MB in use"), rows)}"""


def _recovery(told: Figures) -> str:
    rows = [
        ("predictions a second before the kill", f"{told['rate_before']:,.0f}"),
        ("from the restart to the first prediction, s", f"{told['first_seconds']:.1f}"),
        ("to full speed, s", f"{told['full_speed_seconds'] or told['caught_up_seconds']:.1f}"),
        (f"to the end of {told['unread']:,} unread records, s", f"{told['caught_up_seconds']:.1f}"),
        ("predictions in the topic", f"{told['predictions']:,}"),
        ("counted in Redis at the end", f"{told['counted']:,}"),
    ]
    return f"""## Recovery

{_command("recovery")}: a consumer is killed (SIGKILL) while it reads, and started again at once. It has a
`kafka.instance_id`, so that its partitions wait for it; without one they move after
`kafka.session_timeout_seconds`.

{table(("", "measured"), rows)}"""


def startup_table(told: Sequence[Figures]) -> str:
    """Wall and CPU time of commands, in Markdown.

    Args:
        told: figures of every command.
    """
    rows = [(f"`{row['command']}`", f"{row['wall_s']:.2f}", f"{row['cpu_s']:.2f}") for row in told]
    return table(("command", "wall time, s", "CPU time, s"), rows)


def _startup(told: Sequence[Figures]) -> str:
    return f"""## Commands

{_command("startup")}: commands that need no server, from start to end, beside Python alone. By the clock it is the median, CPU is
the least. `check` reads `deploy/compose/credence.yaml`.

{startup_table(told)}"""


def _rounds(told: Sequence[Figures], of_stream: Sequence[Figures]) -> str:
    rows = [
        (
            f"{row['groups']:,.0f} groups, {row['outcomes']:,.0f} labels",
            f"{row['round_median_ms']:,.0f}",
            f"{row['round_cpu_ms']:,.0f}",
            f"{row['cold_start_s']:.1f}",
            f"{row['redis_mb']:,.1f}",
            f"{row['process_mib']:,.0f} / {row['process_most_mib']:,.0f}",
        )
        for row in told
    ]
    heads = (
        "",
        "a round, ms",
        "its CPU, ms",
        "first round, s",
        "labels, MB of Redis",
        "process, MiB / at most",
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
    stream_heads = ("", "least CPU of a round, ms", "median", "most")
    most = _most_labels(told)
    return f"""## Rounds and labels

{_command("rounds")}: what a tick of the scheduler costs, `ModelMonitor.refresh` and `ask`, on a process that is
warm, with the answers to the last round's requests new. The model has one attribute of so many values, ten score
bins, ten classes, labels with a half-life, an estimation and an identification. By the clock it is the median, CPU
is the least. The first round of a process reads all outcomes. Redis writes no append-only file here.

{table(heads, rows)}

{_command("rounds_stream")}: the same for a model with 1,000 classes, ten score bins, and attributes of 50, 20 and 10
values. A grouping is by class and one by each attribute. Labels are requested by class and by the first attribute.
The predictions came over eight days, so that traffic has epochs. A round evaluates all groupings.

{table(stream_heads, stream_rows)}

Beliefs take no longer with more labels: all that they need of them is summed up by cell, asker and true class. What is
left is the statistics of the groups: the learned prior's fit, joint draws of the ranks, intervals. Few labels leave more
of the prior's grid plausible, so they take longer. Evidence, and what changes leave of labels, look at these one by one,
but only at those of groups that have others than in the last round. What grows with all labels is to pick these, to
age each, and to tell when they were given: {_thousand_labels_ms(told):.2f} ms for every thousand labels.

A process that starts reads the stream in pages of 10,000 and answers its health checks meanwhile; it is not ready before it has read all.

**What labels leave in Redis** is the growth of `used_memory`: outcomes, records of closed requests, budgets and
tallies; not traffic and pool, which do not depend on labels. At {most["outcomes"]:,.0f} labels it is
{most["redis_bytes"]:,.0f} bytes each: {most["stream_bytes"]:,.0f} of its entry in the outcome stream, of which
`bounds.outcomes` keeps the newest, the rest of the record of its request, kept while the outcome is there or may be
corrected (`bounds.correction_days`). An entry holds names as they are: item id, classes, attributes, assessment,
grouping, group and annotator, 100 characters of them here; longer names cost what they are longer. Records stand in
16,384 hashes, which Redis packs while they have up to 512 entries of up to 64 bytes (its defaults; with a lower
`hash-max-listpack-entries`, before Redis 7 `hash-max-ziplist-entries`, a record takes about twice the memory). With
few labels a hash has few records to share its own memory. A revision adds an entry like the outcome's; a skipped
request keeps some 300 bytes more for `bounds.correction_days`, as a correction may still make it an outcome.

**What a label takes in a process**: {most["process_bytes"]:,.0f} bytes, all that a first round allocates and keeps
included. Outcomes are columns, 55 bytes each; beside them stand some 130 bytes for every different cell, asker and
outcome. They are forgotten when the stream is trimmed, and what gave them meaning is tidied up each time that as
many have gone as are there: a process that runs for ever holds what `bounds.outcomes` says, plus a quarter."""


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


def _sizing(told: dict[str, Any]) -> str:
    cpu = {s["stream"]: (s["readers"], s["record_bytes"]) for s in told["ingest"]}
    (small, small_bytes), (packed, packed_bytes) = cpu["one in a record"], cpu["100 in a record"]
    ways = {
        "one in a record": (small["credence"]["cpu_us"], small_bytes, 1),
        "the same, fast fetch": (small["credence, fast fetch"]["cpu_us"], small_bytes, 1),
        "100 in a record": (packed["credence"]["cpu_us"], packed_bytes / 100, 100),
    }
    item_bytes = _pooled_item_bytes(told["flushes"])
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
    most = _most_labels(told["rounds"])
    heads = (
        "predictions", "cores in use", "consumer processes", "from Kafka, Gbit/s",
        "Redis, traffic and pool, GB", "to Redis, Gbit/s",
    )  # fmt: skip
    return f"""## What to size for

All of this is arithmetic from the tables above.

**Consumers.** A process is one core. Cores in use = predictions a second x CPU of one; processes = that over
{UTILISATION:.0%}, which leaves room for peaks and for catching up. Have at least as many partitions as processes.
What counts most is packing: producers that put many predictions in a record save most of the cost. Redis is that
of a model of {SIZED_CELLS:,} table entries and {SIZED_ITEMS:,} pooled items, with a partition a process and flushes as by default.

{table(heads, rows)}

**Redis, of one model.** Traffic: the sum over its tables of rows x columns x {CELL_BYTES} bytes (8 in tables of counts alone), for
every partition. `credence check` lists the tables, and `bounds.table_bytes` bounds their sum:

| table of | rows | columns | bytes an entry |
| --- | --- | --- | ---: |
| all traffic | 1 | classes x score bins | {CELL_BYTES} |
| an attribute | values, at most `bounds.attribute_values` + 2 | score bins | {CELL_BYTES} |
| the same, where a grouping is by class | the same | classes | 8 |
| the same, where there is a challenger | the same | 3 | {CELL_BYTES} |
| votes, or agreement with a challenger | patterns + 2 | classes x score bins | {CELL_BYTES} |

An attribute of 1,000 values with ten score bins takes 0.24 MB a partition, and 0.08 MB more with ten classes. A process
that shows beliefs holds the tables of all partitions, merged; so it has a row for every value that any partition
has. Marks of traffic, 18 after a week and 38 after three years, hold the counts of all merged tables once more:
compressed in Redis, 8 bytes an entry in a process. Pool: at most `bounds.pool_items` (or
one item of every group that is asked about, if these are more) x partitions x {item_bytes:.0f} bytes measured, of
which the entry in a group's sketch takes 16; payloads, longer ids and attributes come on top.
Labels: {most["redis_bytes"]:,.0f} bytes each at {most["outcomes"]:,.0f}, of which the outcome takes
{most["stream_bytes"]:,.0f}; closed requests leave after `bounds.correction_days`. A flush writes the pages of tables
that have changed and what is new in the pool; with a higher `kafka.flush_seconds` and `kafka.flush_records` it
writes less often. With many partitions take a Redis Cluster: all of one model is
on one node, so it is models that it spreads.

**Rounds.** The process that leads takes {most["process_mib"]:,.0f} MiB with {most["outcomes"]:,.0f} labels. Rounds cost
by groups and new labels, not by predictions: one replica and a standby serve any rate.

**Network.** Label requests and labels are few beside what consumers read from Kafka and write to Redis."""


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
