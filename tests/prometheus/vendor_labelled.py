"""A deployment whose models tell spam from ham, and whose labels come through the vendor API."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import yaml
from harness import Deploy, Deployment
from office import TOKENS, VENDORS, Caller

from service.demo.ports import free_port

MODEL: dict[str, Any] = {
    "classes": ["spam", "ham"],
    "assessments": {
        "filter": {
            "task": "performance",
            "positive_class": "spam",
            "targets": {"precision": 0.7, "recall": 0.7},
            "budget": {"labels": 200, "per_days": 1, "burst": 1.0, "reserve": 0.0},
            "max_in_flight": 40,
            "lease_seconds": 60,
        },
        "pool": {
            "task": "ensemble",
            "positive_class": "spam",
            "members": ["strict", "lenient"],
            "member_labels": 20,
            "targets": {"precision": 0.7},
            "budget": {"labels": 200, "per_days": 1, "burst": 1.0, "reserve": 0.0},
            "lease_seconds": 60,
        },
    },
}

CONTEST: dict[str, Any] = {
    "classes": ["spam", "ham"],
    "groupings": {"site": {"by": "attribute", "attribute": "site"}},
    "assessments": {
        "next": {
            "task": "challenge",
            "challenger": "v2",
            "grouping": "site",
            "budget": {"labels": 200, "per_days": 1, "burst": 1.0, "reserve": 0.0},
            "lease_seconds": 60,
        },
        "fair": {
            "task": "error_rates",
            "grouping": "site",
            "positive_class": "spam",
            "limits": {"false_positive_rate": 0.2},
            "max_differences": {"false_positive_rate": 0.1},
            "min_ratios": {"selection_rate": 0.8},
            "budget": {"labels": 200, "per_days": 1, "burst": 1.0, "reserve": 0.0},
            "lease_seconds": 60,
        },
    },
}

CROWD: dict[str, Any] = {
    "classes": ["spam", "ham"],
    "labels_per_item": {"least": 2, "most": 3},
    "alerts": {"min_reliability": 0.8},
    "assessments": {
        "ask": {
            "budget": {"labels": 400, "per_days": 1, "burst": 1.0, "reserve": 0.0},
            "max_in_flight": 80,
            "lease_seconds": 60,
        },
    },
}
PRIOR = "informed_jeffreys"
PEOPLE = itertools.cycle(["ana", "ben", "cem"])


def mail(number: int) -> tuple[dict[str, Any], str]:
    """The prediction of one mail, and what it is."""
    rng = random.Random(number)
    truth = "spam" if rng.random() < 0.3 else "ham"
    of_spam = rng.betavariate(6, 2) if truth == "spam" else rng.betavariate(2, 7)
    called = {"predicted_class": "spam", "score": of_spam}
    if of_spam < 0.5:
        called = {"predicted_class": "ham", "score": 1 - of_spam}
    votes = {"strict": "spam" if of_spam >= 0.7 else "ham", "lenient": "spam" if of_spam >= 0.3 else "ham"}
    return {"model": "mail", "item_id": f"mail-{number:06d}", **called, "votes": votes}, truth


def contested(number: int) -> dict[str, Any]:
    """The prediction of the same mail by a model that has a challenger."""
    rng = random.Random(f"contest {number}")  # not that of the mail, or what is spam would never be seen
    _, truth = mail(number)
    other = {"spam": "ham", "ham": "spam"}[truth]
    said = [other if rng.random() < wrong else truth for wrong in (0.3, 0.1)]
    return {
        "model": "contest",
        "item_id": f"mail-{number:06d}",
        "predicted_class": said[0],
        "score": 0.9,
        "votes": {"v2": said[1]},
        "attributes": {"site": "east" if number % 2 else "west"},
    }


def gold_mail(number: int) -> dict[str, Any]:
    """A mail that nobody errs about, and what it is: half of them are predicted incorrectly."""
    item, truth = mail(of := 900_000 + 10 * (number // 9) + 1 + number % 9)
    other = {"spam": "ham", "ham": "spam"}[truth]
    return {
        "item_id": f"mail-{of}",
        "predicted_class": other if number % 2 else truth,
        "score": item["score"],
        "true_class": truth,
    }


class VendorLabelled:
    """The deployment, and the vendor who labels for it.

    Args:
        deploy: makes the deployment; its configuration is a file of its own, so that others may follow.
    """

    def __init__(self, deploy: Deploy) -> None:
        self.deployment: Deployment = deploy(tick=0.5, partitions=1)
        self.caller = Caller(free_port(), TOKENS["acme"])
        document = yaml.safe_load(self.deployment.config.read_text())
        # The prior that is learned takes most of a round, most of all where people may err.
        models = {"mail": MODEL, "contest": CONTEST, "crowd": CROWD}
        document["models"] = {name: model | {"prior": PRIOR} for name, model in models.items()}
        gold = self.deployment.folder / "gold.jsonl"
        gold.write_text("".join(f"{json.dumps(gold_mail(number))}\n" for number in range(1, 200)))
        learned = CROWD["labels_per_item"] | {
            "max_error": "learned",
            "gold": {"file": str(gold), "share": 0.5},
        }
        document["models"]["crowd"]["labels_per_item"] = learned
        document["vendors"] = {"acme": VENDORS["acme"]}
        document["vendor_api"] = {"port": self.caller.port, "requests_per_second": 500, "burst": 500}
        document["schedule"]["performance_seconds"] = 2
        self.deployment.config = Path(self.deployment.folder / "mail.yaml")
        self.deployment.config.write_text(yaml.safe_dump(document, sort_keys=False))

    def send(self, numbers: range) -> None:
        """Send the predictions of some mails."""
        for number in numbers:
            item, _ = mail(number)
            alone = {name: value for name, value in item.items() if name != "votes"}
            for sent in (item, contested(number), alone | {"model": "crowd"}):
                self.deployment.send("predictions", json.dumps(sent).encode(), sent["item_id"])
        self.deployment.producer.flush()

    def answer(self) -> int:
        """Have the vendor answer what is there; how many requests that were."""
        person = next(PEOPLE)
        claims = self.caller.claim(20, annotator=person)
        for claim in claims:
            number = int(claim["request"]["item_id"].removeprefix("mail-"))
            # Now and then somebody errs, or there would be nothing to agree on by chance.
            _, truth = mail(number + (number % 10 == 0 and person == "ben"))
            self.caller.answer(claim, truth, annotator=person)
        return len(claims)
