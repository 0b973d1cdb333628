"""Errors of the Kafka client in our words."""

from __future__ import annotations

import pytest
from kafka.errors import UnknownTopicOrPartitionError

from service.domain.errors import Refused
from service.kafka.topic_metadata import translate_errors


def test_a_topic_that_does_not_exist_is_named_with_the_command_that_creates_it() -> None:
    with pytest.raises(Refused) as caught, translate_errors("animals"):
        raise UnknownTopicOrPartitionError
    assert str(caught.value).endswith("topic animals does not exist; create it with `credence topics create`")
