"""What serves vendors, once Redis and Kafka have been reached."""

from __future__ import annotations

from dataclasses import dataclass

from service.serving.vendor_api.answers import Answers
from service.serving.vendor_api.claims import Claims


@dataclass(frozen=True)
class VendorService:
    """The claims and the answers of all vendors."""

    claims: Claims
    answers: Answers
