"""Responses of the Open Inference Protocol: which records are one."""

from __future__ import annotations

import msgspec

from consumers.formats.event_headers import Headers, check_event
from consumers.formats.native import ABSENT, Name, attempt
from consumers.formats.tensors import Tensor, binary_data_error
from service.domain.errors import BadMessage
from service.domain.messages import PREDICTION_TYPE
from service.domain.open_inference import RESPONSE_CLOUDEVENTS_VERSIONS, RESPONSE_TYPES

_EVENT_TYPES = frozenset(name.encode() for name in RESPONSE_TYPES)
_EVENT_VERSIONS = frozenset(version.encode() for version in RESPONSE_CLOUDEVENTS_VERSIONS)


class Response(msgspec.Struct, gc=False):
    """A parsed response; its tensors are not checked yet."""

    model_name: Name
    outputs: list[Tensor]
    id: str | None = None
    parameters: dict[str, msgspec.Raw] | None = None
    model: msgspec.Raw = ABSENT


_decode_response = msgspec.json.Decoder(Response).decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def parse_response(headers: Headers, value: bytes) -> Response | None:
    """The response in a record; None if it is not meant as one.

    Raises:
        BadMessage: it is meant as one, but is none.
    """
    declared = _is_declared(headers)
    if declared is None and b'"model_name"' in value and b'"outputs"' in value:
        check_event(headers, PREDICTION_TYPE)
    elif not declared:
        return None
    response: Response | BadMessage = attempt(_decode_response, value)
    if isinstance(response, BadMessage):
        if response.reason == "malformed_json" and b'"binary_data_size"' in value:
            raise binary_data_error("outputs")
        if declared or _claims_to_be_response(value):
            raise response
        return None
    return None if not declared and response.model is not ABSENT else response


def _is_declared(headers: Headers) -> bool | None:
    """Whether a record's CloudEvents type is that of a response; None if it has no type.

    Raises:
        BadMessage: it is, in an unsupported version of CloudEvents.
    """
    values = dict(headers)
    if values.get("ce_type") not in _EVENT_TYPES:
        return False if "ce_type" in values else None
    if "ce_specversion" in values and values["ce_specversion"] not in _EVENT_VERSIONS:
        known = " or ".join(RESPONSE_CLOUDEVENTS_VERSIONS)
        raise BadMessage("unsupported_event", f"ce_specversion of a response must be {known}")
    return True


def _claims_to_be_response(value: bytes) -> bool:
    """Whether an object is meant as a response, even if it is invalid."""
    fields = attempt(_decode_object, value)
    return (
        not isinstance(fields, BadMessage)
        and "model" not in fields
        and {"model_name", "outputs"} <= fields.keys()
    )
