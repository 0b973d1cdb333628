"""Where a person labels on this machine, and how they log in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from service.config.new_secrets import new_label_key, new_token
from service.demo.ports import free_port

TEAM: Final = "you"
LABEL_PATH: Final = "/label/"


@dataclass(frozen=True)
class Desk:
    """The labelling page of one run, with secrets of its own.

    Attributes:
        port: of the vendor API on 127.0.0.1.
        secret: token to log in with, and its SHA-256.
        label_key: of the team.
    """

    port: int = field(default_factory=free_port)
    secret: tuple[str, str] = field(default_factory=new_token)
    label_key: str = field(default_factory=new_label_key)

    @property
    def token(self) -> str:
        """What a person logs in with."""
        return self.secret[0]

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://127.0.0.1:{self.port}{LABEL_PATH}"

    @property
    def settings(self) -> dict[str, Any]:
        """`vendors` and `vendor_api` of the configuration."""
        team = {"token_sha256": [self.secret[1]], "label_keys": [self.label_key], "labelling_page": True}
        return {"vendors": {TEAM: team}, "vendor_api": {"port": self.port}}
