"""The command line."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from kafka.admin import NewTopic
from kafka.errors import AuthorizationError, KafkaError, TopicAlreadyExistsError
from prometheus_client import disable_created_metrics
from rich.console import Console

from service import __version__
from service.app.dead_letters_command import add_parser as add_dead_letters_parser
from service.app.docgen.configuration import configuration_page
from service.app.docgen.contract import contract_files
from service.app.docgen.generated_files import add_check_option, write_or_check
from service.app.docgen.metrics import metrics_page
from service.app.docgen.rights import rights_page
from service.app.docgen.tables import table_lines
from service.app.layouts_command import add_parser as add_layouts_parser
from service.app.permissions import kafka_lines, redis_lines
from service.app.process import ALL_ROLES, Application, Role
from service.app.reference_command import add_parser as add_reference_parser
from service.app.status_command import status_view
from service.app.wiring import asked_pools, model_monitor, pool_sizes
from service.config.loader import load_settings
from service.config.settings import Settings
from service.config.vendor_secrets import new_label_key, new_token
from service.domain.errors import ConfigurationError, CredenceError, Refused, Unavailable
from service.kafka.clients import build_admin
from service.replay.command import add_parser as add_replay_parser
from service.serving.documents.words import chooser, question
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.lease import shared_hash_key
from service.telemetry.logs import configure_logs

EXIT_FAILED = 1
EXIT_BAD_CONFIGURATION = 2

DESCRIPTION = """\
Credence watches deployed classifiers with few labels. It streams a model's predictions from
Kafka into Redis, keeps Bayesian beliefs about every group's accuracy and calibration, asks by Thompson
sampling for the labels that tell most, and shows credible intervals through Prometheus.

Start with `credence demo`, which brings its own broker and Redis. In production, write a configuration
(docs/configuration.md), look at it with `credence check`, create the topics, and run.
"""

EPILOG = """\
exit codes: 0 done; 1 failed while running; 2 the configuration or the command line is not valid.
The configuration is a YAML file; CREDENCE_* variables override its keys (CREDENCE_REDIS__URL is redis.url).
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the process's exit code."""
    # A second series for every counter, which nothing here reads; the library left the call untyped.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except ConfigurationError as error:
        print(f"credence: {error}", file=sys.stderr)
        return EXIT_BAD_CONFIGURATION
    except (CredenceError, OSError) as error:
        print(f"credence: {error}", file=sys.stderr)
        return EXIT_FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="credence",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"credence {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    configured = argparse.ArgumentParser(add_help=False)
    configured.add_argument(
        "-c",
        "--config",
        type=Path,
        default=Path(os.environ.get("CREDENCE_CONFIG", "credence.yaml")),
        metavar="FILE",
        help="the configuration (default: $CREDENCE_CONFIG, else credence.yaml)",
    )

    def add(name: str, command: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, parents=[configured])
        sub.set_defaults(command=command)
        return sub

    add("check", _check, "validate the configuration and say what it would do")
    add("run", _run, "run everything in one process")
    consume = add(
        "consume", _consume, "run one consumer alone; as many processes as partitions share the work"
    )
    consume.add_argument("what", choices=["predictions", "labels"], help="what is consumed")
    add("schedule", _schedule, "run the rounds alone; of any number of replicas one asks for labels")
    add("serve", _serve, "serve the status page and its API alone, without asking for labels")
    topics = add("topics", _topics, "create the Kafka topics")
    topics.add_argument(
        "action", choices=["create"], help="what to do; topics that exist are left as they are"
    )
    rights = add("rights", _rights, "tell what every role must be allowed, and no more")
    rights.add_argument(
        "where",
        choices=sorted(_RIGHTS),
        help="redis: lines of an ACL file, still without passwords; kafka: arguments of kafka-acls.sh",
    )
    add("status", _status, "show what is believed now, as tables in the terminal")
    vendors = commands.add_parser(
        "vendors",
        help="make a secret for a labelling vendor",
        description="Print a new bearer token of the vendor API with its SHA-256, or a new label key. "
        "Nothing is stored: put SHA-256 or key into the configuration, and give the vendor the secret.",
    )
    vendors.add_argument("what", choices=["token", "key"], help="which secret")
    vendors.set_defaults(command=_vendors)

    add_dead_letters_parser(commands, configured)
    add_layouts_parser(commands, configured)
    add_reference_parser(commands, configured)
    add_replay_parser(commands)
    contract = commands.add_parser(
        "contract",
        help="write the message contract",
        description="Write JSON Schemas, the AsyncAPI document and the page of all messages.",
    )
    contract.add_argument("directory", nargs="?", type=Path, default=Path("docs/contract"), metavar="DIR")
    add_check_option(contract)
    contract.set_defaults(command=_contract)
    describe = commands.add_parser(
        "describe",
        help="write a page of the docs",
        description="Write docs/configuration.md, docs/metrics.md or docs/rights.md from the code.",
    )
    describe.add_argument("page", choices=sorted(_PAGES))
    describe.add_argument("directory", nargs="?", type=Path, default=Path("docs"), metavar="DIR")
    add_check_option(describe)
    describe.set_defaults(command=_describe)
    demo = commands.add_parser(
        "demo",
        help="see it work on a real classifier, with a broker and a Redis of its own",
        description="Train classifiers on handwritten digits, stream their predictions through a real "
        "broker, degrade one of two cameras half-way, and watch Credence find it with few labels.",
        parents=[configured],
    )
    demo.add_argument(
        "part",
        nargs="?",
        choices=["producer", "labeller"],
        help="play this part alone, against the Kafka of the configuration, until it is stopped; the whole "
        "demo brings servers and a configuration of its own",
    )
    demo.add_argument(
        "--seconds",
        type=float,
        default=float(os.environ.get("DEMO_SECONDS", "90")),
        help="length of the stream (default: $DEMO_SECONDS, else 90)",
    )
    demo.add_argument(
        "--seed",
        type=int,
        default=int(os.environ.get("DEMO_SEED", "1")),
        help="decides images, cameras, draws and answers of the whole demo (default: $DEMO_SEED, else 1)",
    )
    demo.set_defaults(command=_demo)
    return parser


def _settings(options: argparse.Namespace) -> Settings:
    return load_settings(options.config, os.environ)


def _check(options: argparse.Namespace) -> int:
    settings = _settings(options)
    topics = settings.kafka.topics
    print(f"{options.config}: valid")
    print(
        f"reads {topics.predictions} and {topics.labels} from {', '.join(settings.kafka.bootstrap_servers)}"
    )
    print(f"writes {topics.label_requests} and {topics.dead_letters}")
    http, monitoring = settings.http, settings.monitoring
    print(f"serves the status page at http://{http.host}:{http.port}/")
    print(f"serves metrics and health at http://{monitoring.host}:{monitoring.port}/metrics")
    print(f"looks every {settings.schedule.tick_seconds:g} s")
    for name, model in settings.models.items():
        space = settings.cell_space(name)
        print(
            f"model {name}: {len(model.classes)} classes, {space.bin_count} score bins, "
            f"groupings {', '.join(space.groupings)}"
        )
        for line in table_lines(space, settings.bounds.table_bytes):
            print(f"  {line}")
        pools = asked_pools(settings, name, space)
        for grouping, pool in pools.items():
            sizes = pool_sizes(settings, name, pools)
            print(
                f"  pool of {grouping}: up to {sizes.wanted[pool]} items a group and partition, "
                f"fewer where all groups together would have over {sizes.capacity // len(pools)}"
            )
        if not model.assessments:
            print("  asks for no labels: no assessment is configured")
        for assessment_name, assessment in model.assessments.items():
            budget = assessment.budget
            window = "in all" if budget.per_days is None else f"every {budget.per_days:g} days"
            print(
                f"  assessment {assessment_name}: {question(assessment)} "
                f"Asks by {assessment.asked_grouping} ({chooser(assessment)}); "
                f"at most {budget.labels} labels {window}, {assessment.max_in_flight} in flight, "
                f"{assessment.lease_seconds:g} s to answer, {assessment.max_attempts} attempt(s)"
            )
    for line in _vendor_lines(settings):
        print(line)
    return 0


def _vendor_lines(settings: Settings) -> Iterator[str]:
    api = settings.vendor_api
    if any(vendor.token_sha256 for vendor in settings.vendors.values()):
        scheme = "http" if api.certificate_file is None else "https"
        yield f"serves the vendor API at {scheme}://{api.host}:{api.port}/"
    for name, vendor in settings.vendors.items():
        topic = vendor.topic or settings.kafka.topics.label_requests
        uses = f"{len(vendor.token_sha256)} token(s)" if vendor.token_sha256 else "no token, so Kafka alone"
        yield (
            f"vendor {name}: models {', '.join(vendor.models or settings.models)}; share {vendor.share:g}; "
            f"{uses}; {len(vendor.label_keys)} label key(s); requests to {topic}"
        )


def _vendors(options: argparse.Namespace) -> int:
    if options.what == "key":
        print(new_label_key())
    else:
        token, digest = new_token()
        print(f"token: {token}\ntoken_sha256: {digest}")
    return 0


def _play(options: argparse.Namespace, roles: frozenset[Role]) -> int:
    settings = _settings(options)
    configure_logs(settings.log_level)
    application = Application(settings, roles)
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: application.stop())
    return application.run()


def _run(options: argparse.Namespace) -> int:
    return _play(options, ALL_ROLES)


def _consume(options: argparse.Namespace) -> int:
    return _play(options, frozenset({options.what}))


def _schedule(options: argparse.Namespace) -> int:
    return _play(options, frozenset({"schedule"}))


def _serve(options: argparse.Namespace) -> int:
    return _play(options, frozenset({"serve"}))


def _topics(options: argparse.Namespace) -> int:
    settings = _settings(options)
    kafka = settings.kafka
    names = [
        kafka.topics.predictions,
        kafka.topics.label_requests,
        kafka.topics.labels,
        kafka.topics.dead_letters,
        *(vendor.topic for vendor in settings.vendors.values() if vendor.topic is not None),
    ]
    try:
        admin = build_admin(kafka)
        for name in names:
            topic = NewTopic(
                name, num_partitions=kafka.partitions, replication_factor=kafka.replication_factor
            )
            try:
                admin.create_topics([topic])
            except TopicAlreadyExistsError:
                print(f"{name}: exists")
            except AuthorizationError as error:
                raise Refused("kafka", error, "grant CREATE on the topics") from error
            else:
                print(f"{name}: created with {kafka.partitions} partitions")
        admin.close()
    except KafkaError as error:
        raise Unavailable("kafka", error) from error
    return 0


def _rights(options: argparse.Namespace) -> int:
    for line in _RIGHTS[options.where](_settings(options)):
        print(line)
    return 0


def _status(options: argparse.Namespace) -> int:
    settings = _settings(options)
    connection = Connection(build_redis(settings.redis), settings.redis.prefix)
    hash_key = settings.hash_key_bytes() or shared_hash_key(connection)
    rng = np.random.default_rng(secrets.randbits(128))
    snapshots = [
        model_monitor(settings, name, connection, hash_key=hash_key, rng=rng).refresh(time.time())
        for name in settings.models
    ]
    Console().print(status_view(snapshots))
    return 0


_RIGHTS: dict[str, Callable[[Settings], Iterable[str]]] = {"redis": redis_lines, "kafka": kafka_lines}
_PAGES: dict[str, Callable[[], str]] = {
    "configuration": configuration_page,
    "metrics": metrics_page,
    "rights": rights_page,
}


def _contract(options: argparse.Namespace) -> int:
    return write_or_check(options.directory, contract_files(), check=options.check)


def _describe(options: argparse.Namespace) -> int:
    return write_or_check(
        options.directory, {f"{options.page}.md": _PAGES[options.page]()}, check=options.check
    )


def _demo(options: argparse.Namespace) -> int:
    if options.part is None:
        from service.demo.run import run_demo  # noqa: PLC0415 - needs scikit-learn, an extra

        return run_demo(seconds=options.seconds, console=Console(), seed=options.seed)
    from service.demo.parts import play_part  # noqa: PLC0415 - needs scikit-learn, an extra

    play_part(options.part, _settings(options), seconds=options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
