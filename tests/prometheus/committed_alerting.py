"""The committed rules and routes as the tests run them: without their waits, and sent to a webhook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from monitoring_servers import WebhookReceiver

ROOT = Path(__file__).parents[2]
ALERTMANAGER_FILE = ROOT / "deploy/alertmanager/credence.alertmanager.yaml"
TEMPLATE_FILE = ROOT / "deploy/alertmanager/credence.tmpl"


def hurried_rules(name: str, folder: Path) -> str:
    """A copy of a rule file that waits for a second where the original waits for minutes.

    That an alert waits long enough is for the promtool tests to say; here it matters that a condition
    becomes a notification, and that its end does.
    """
    rules = yaml.safe_load((ROOT / "deploy/prometheus" / name).read_text())
    for group in rules["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            rule.update(dict.fromkeys({"for", "keep_firing_for"} & rule.keys(), "1s"))
    path = folder / name
    path.write_text(yaml.safe_dump(rules))
    return str(path)


def routing_to(webhook: WebhookReceiver, *, slack: bool = False) -> dict[str, Any]:
    """The committed routes and inhibitions, without their waits.

    Args:
        webhook: gets everything, at a path of the receiver's name.
        slack: whether receivers that post to Slack keep doing so, to the webhook.
    """
    config = yaml.safe_load(ALERTMANAGER_FILE.read_text())
    config["templates"] = [str(TEMPLATE_FILE)]
    del config["global"]  # names files of secrets
    _hurry(config["route"])
    for receiver in config["receivers"]:
        url = f"{webhook.url}/{receiver['name']}"
        receiver.pop("pagerduty_configs", None)
        posts = receiver.pop("slack_configs", [])
        if slack:
            receiver["slack_configs"] = [post | {"api_url": url} for post in posts]
        else:
            receiver["webhook_configs"] = [{"url": url}]
    return dict(config)


def _hurry(route: dict[str, Any]) -> None:
    # A repetition still takes its hours, so what comes twice was sent for two reasons.
    route |= {"group_wait": "1s", "group_interval": "1s"}
    for child in route.get("routes", []):
        _hurry(child)
