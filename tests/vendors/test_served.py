"""The vendor API as processes serve it: the calls of its documentation, from a shell, down to an outcome."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

from harness import Deploy, Deployment, Process, wait_for
from missing_programs import program
from office import Caller, Told

from service.demo.ports import free_port
from service.serving.vendor_api.problems import Kind
from service.store.outcome_entries import BEGINNING

TOKEN = "a-token-that-is-used-by-tests-alone"
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "vendor-api.md"
ASSESSMENTS = "{regions: {grouping: region, budget: {labels: 40}, max_in_flight: 40, lease_seconds: 60}}"


def served(deploy: Deploy, **options: object) -> tuple[Deployment, Caller]:
    """A deployment with one vendor, and where it is served."""
    deployment = deploy(assessments=ASSESSMENTS, partitions=1)
    vendor = {
        "label_keys": ["k" * 32],
        "token_sha256": [hashlib.sha256(TOKEN.encode()).hexdigest()],
        **options,
    }
    port = free_port()
    deployment.configure("vendors", acme=vendor)
    deployment.configure("vendor_api", port=port, requests_per_second=200)
    return deployment, Caller(port, TOKEN)


def answered(caller: Caller) -> Told | None:
    """Its models, once it answers."""
    try:
        return caller.get("/models")
    except OSError:
        return None


def outcomes(deployment: Deployment) -> list[str]:
    page = deployment.facts().outcomes(BEGINNING)
    return [] if page is None else [entry.label.true_class for entry in page.entries]


def commands(word: str) -> str:
    """A command of the documentation, by a word in it."""
    (found,) = [
        block
        for block in re.findall(r"```sh\n(.*?)```", DOCUMENTATION.read_text(), re.DOTALL)
        if word in block
    ]
    return found


def shell(script: str, **environment: str) -> str:
    done = subprocess.run(
        ["bash", "-euc", script],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_the_calls_of_the_documentation_lead_to_an_outcome(deploy: Deploy, tmp_path: Path) -> None:
    program("curl", package="curl")
    deployment, caller = served(deploy)
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=60, what="readiness")
        deployment.send_predictions(range(40))
        at = {"TOKEN": TOKEN, "CREDENCE": f"http://127.0.0.1:{caller.port}"}
        (model,) = json.loads(shell(commands('/vendor/v1/models"'), **at))["models"]
        assert model["model"] == "sorter"
        claims = json.loads(shell(commands("monday-0001"), **at))["claims"]
        assert claims
        claim = claims[0]
        answer = shell(commands("/answer"), **at, CLAIM=claim["claim_id"], REQUEST=claim["request_id"])
        assert json.loads(answer) == {"state": "submitted"}
        wait_for(lambda: outcomes(deployment) == ["dog"], seconds=30, what="the outcome")
        wait_for(lambda: caller.get("/models").body["models"][0]["waiting"], seconds=30, what="requests")
        shell(f"cd {tmp_path}\n{commands('tasks.json')}", **at)
        assert "<Image" in (tmp_path / "config.xml").read_text()
        assert {"request_id", "claim_id"} <= json.loads((tmp_path / "tasks.json").read_text())[0][
            "data"
        ].keys()
        sample = 'credence_vendor_labels_total{kind="answer",model="sorter",vendor="acme"}'
        assert process.metric(sample) == 1


def test_every_problem_is_in_the_documentation() -> None:
    answer = DOCUMENTATION.read_text()
    assert [kind.word for kind in Kind if f"`{kind.word}`" not in answer] == []
    assert [kind.word for kind in Kind if f"| {kind.status} |" not in answer] == []


def test_a_process_that_ends_answers_who_waits_and_says_goodbye(deploy: Deploy) -> None:
    deployment, caller = served(deploy)
    deployment.configure("vendor_api", wait_seconds=300)
    caller.seconds = 400
    with deployment.process("serve") as process:
        wait_for(lambda: (t := answered(caller)) and t.status == 200, seconds=60, what="the vendor API")
        found: list[Told] = []
        waiting = threading.Thread(
            target=lambda: found.append(caller.post("/claims", {"wait_seconds": 300.0}))
        )
        waiting.start()
        wait_for(lambda: waits(process) == 1, seconds=10, what="a wait")
        began = time.monotonic()
        process.popen.send_signal(signal.SIGTERM)
        waiting.join(120)
        assert [answer.claims for answer in found] == [[]]
        assert process.popen.wait(120) == 0
        assert time.monotonic() - began < 250, "before its time is over"


def test_people_log_in_to_the_labelling_page(deploy: Deploy) -> None:
    deployment, caller = served(deploy, labelling_page=True)
    same = {"Sec_Fetch_Site": "same-origin"}
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=60, what="readiness")
        login = caller.call("POST", "/label/login", {"token": TOKEN}, **same)
        cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}
        told = Caller(caller.port, None).call("GET", "/label/session", **same, **cookie)
        assert told.body["vendor"] == "acme"


def waits(process: Process) -> float | None:
    return process.metric('credence_vendor_api_waits{vendor="acme"}')


def test_other_processes_do_not_serve_vendors(deploy: Deploy) -> None:
    deployment, caller = served(deploy)
    with deployment.process("consume", "labels") as process:
        wait_for(process.ready, seconds=60, what="readiness")
        assert answered(caller) is None
