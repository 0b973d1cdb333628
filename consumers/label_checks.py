"""Validation of labels, as far as nothing but the label and the configuration is needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from consumers.formats.decode_errors import guarded
from consumers.formats.native import WireLabel, decode_label
from service.domain.errors import BadMessage
from service.domain.label_signatures import verify
from service.store.request_registry import is_request_for

ITEM_MISMATCH = "the request is for another item"


@dataclass(frozen=True)
class LabelChecks:
    """Decodes records of labels, and refuses those that no request could accept.

    Attributes:
        classes: label set, by model.
        unrequested: models that take labels without a request: the lowest probability that such a label may
            state, or None where it states none.
        several: models whose items several people label.
        label_keys: by vendor; if there are any, labels must be signed with one of them.
        vendors: that may label, by model.
        message_bytes: longest value.
        native_text: native JSON of a record, which may be of a registry, mapped, or an event.
    """

    classes: Mapping[str, frozenset[str]]
    several: Collection[str]
    unrequested: Mapping[str, float | None]
    label_keys: Mapping[str, Sequence[bytes]]
    vendors: Mapping[str, Collection[str]]
    message_bytes: int
    native_text: Callable[[Any], bytes]

    def decode(self, record: Any) -> tuple[WireLabel, str]:
        """The label, and the vendor that signed it; empty where vendors are not configured.

        Raises:
            BadMessage: it cannot be used.
            Unavailable: the schema registry cannot be asked now.
        """
        value = record.value or b""
        if len(value) > self.message_bytes:
            raise BadMessage("message_too_large", f"the value is over {self.message_bytes} bytes")
        vendor = verify(record.headers, value, self.label_keys) if self.label_keys else ""
        label = decode_label(guarded(self.native_text, record))
        if label.model not in self.classes:
            raise BadMessage("unknown_model", "the configuration has no model of this name")
        if label.true_class is not None and label.true_class not in self.classes[label.model]:
            raise BadMessage("unknown_class", "true_class is not in the model's label set")
        # Duplicates are recognised by time, and a record's time is not signed: a replay would count again.
        if vendor and label.time is None:
            raise BadMessage("missing_field", "a signed label needs a `time` of its own")
        if label.request_id is None:
            self._check_unrequested(label)
            return label, vendor
        if label.model in self.several and label.true_class is not None and not label.annotator:
            raise BadMessage("missing_field", "several people label items of this model: send an `annotator`")
        if vendor:
            self._check_vendor(vendor, label, label.request_id)
        return label, vendor

    def _check_unrequested(self, label: WireLabel) -> None:
        if label.model not in self.unrequested:
            raise BadMessage(
                "missing_field",
                "the label has no `request_id`, and the model is not configured with `unrequested_labels`",
            )
        if label.prediction is not None and label.prediction.predicted_class not in self.classes[label.model]:
            raise BadMessage("unknown_class", "predicted_class is not in the model's label set")
        lowest = self.unrequested[label.model]
        if lowest is None or label.true_class is None:
            return
        if label.probability is None:
            raise BadMessage("missing_field", "a label of a sampled item needs its `probability`")
        if label.probability < lowest:
            raise BadMessage("invalid_field", "the probability is below `sampling_rate`")

    def _check_vendor(self, vendor: str, label: WireLabel, request_id: str) -> None:
        if vendor not in self.vendors[label.model]:
            raise BadMessage("wrong_vendor", "this vendor is not asked about the model")
        # Redis stores short hashes of item and vendor: no label may bring an item that was made to collide.
        if not is_request_for(request_id, label.model, label.item_id):
            raise BadMessage("item_mismatch", ITEM_MISMATCH)
