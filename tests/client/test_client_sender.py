"""The thread that sends predictions starts when it can, survives what fails, and ends with the process."""

from __future__ import annotations

import logging
import multiprocessing
import subprocess
import sys
import textwrap
from typing import Any

import pytest
from harness import Deploy, Deployment, wait_for
from test_client_producer import NOBODY, producer_of, received

from service.client import Producer, sender
from service.client import producer as producer_module


@pytest.fixture
def deployment(deploy: Deploy) -> Deployment:
    return deploy(assessments="{}")


def run_python(code: str, *arguments: str) -> str:
    """What a program printed, within a minute."""
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_log_does_not_raise_while_no_thread_can_be_started_and_the_next_log_tries_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer("sorter", kafka=NOBODY)

    def refuse(_: Any) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(sender.Sender, "start", refuse)
        assert producer.log("a", predicted="cat", score=0.9)
    assert "until a thread can be started: RuntimeError" in caplog.text
    assert not producer._sender.is_alive()
    assert producer.log("b", predicted="cat", score=0.9)
    assert producer._sender.is_alive()
    producer.close(timeout=0)


def test_the_sender_delivers_its_batch_after_an_error_that_nobody_expected(
    deployment: Deployment, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, failures = producer_module.build_producer, [OSError(24, "too many open files"), ValueError("?")]

    def built(*arguments: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop(0)
        return build(*arguments, **options)

    monkeypatch.setattr(producer_module, "build_producer", built)
    with caplog.at_level(logging.WARNING, "service.client"), producer_of(deployment) as producer:
        for number in range(5):
            producer.log(number, predicted="cat", score=0.9)
        assert producer.flush(timeout=60)
    assert "sending them has failed: OSError, too many open files" in caplog.text
    assert {record.key for record in received(deployment, 5)} == {b"0", b"1", b"2", b"3", b"4"}


def test_a_producer_that_fails_unexpectedly_is_replaced(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, made = producer_module.build_producer, []

    def built(*arguments: Any, **options: Any) -> Any:
        made.append(build(*arguments, **options))
        if len(made) == 1:
            monkeypatch.setattr(made[0], "send", lambda *_, **__: made[0].no_such_method())
        return made[-1]

    monkeypatch.setattr(producer_module, "build_producer", built)
    with producer_of(deployment) as producer:
        producer.log("a", predicted="cat", score=0.9)
        assert producer.flush(timeout=60)
    assert len(made) == 2
    assert [record.key for record in received(deployment, 1)] == [b"a"]


def test_a_signal_handler_that_logs_while_the_thread_starts_does_not_wait_for_it() -> None:
    printed = run_python(
        """
        import os, signal
        from service.client import Producer
        from service.client.sender import Sender

        producer = Producer("sorter", kafka="127.0.0.1:9")
        signal.signal(signal.SIGUSR1, lambda *_: print(producer.log("b", predicted="cat", score=0.9)))
        start = Sender.start

        def interrupted(self):
            os.kill(os.getpid(), signal.SIGUSR1)
            start(self)

        Sender.start = interrupted
        print(producer.log("a", predicted="cat", score=0.9))
        print(producer.counters.logged)
        producer.close(timeout=0)
        """
    )
    assert printed.split() == ["True", "True", "2"]


def _log_and_return(producer: Producer) -> None:
    for number in range(10):
        producer.log(number, predicted="cat", score=0.9)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_of_multiprocessing_delivers_its_queue_when_it_ends(deployment: Deployment) -> None:
    with producer_of(deployment) as producer:
        child = multiprocessing.get_context("fork").Process(target=_log_and_return, args=(producer,))
        child.start()
        child.join(60)
        assert child.exitcode == 0
    assert {record.key for record in received(deployment, 10)} == {b"%d" % number for number in range(10)}


def test_log_after_the_end_of_the_interpreter_has_begun_does_not_raise() -> None:
    printed = run_python(
        """
        import atexit
        from service.client import Producer

        producer = Producer("sorter", kafka="127.0.0.1:9")
        atexit.register(lambda: print(producer.log("a", predicted="cat", score=0.9)))
        producer.close(timeout=0)
        """
    )
    assert printed.split() == ["False"]


def test_what_the_sender_waits_for_is_no_text_of_an_error(caplog: pytest.LogCaptureFixture) -> None:
    producer = Producer("sorter", kafka=NOBODY)

    def fail() -> Any:
        raise ValueError("a prediction's text")

    producer._sender._make = fail
    producer.log("a", predicted="cat", score=0.9)
    wait_for(lambda: "sending them has failed: ValueError" in caplog.text, seconds=20, what="the warning")
    producer.close(timeout=0)
    assert "a prediction's text" not in caplog.text
