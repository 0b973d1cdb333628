"""Which topic the stored offsets are of, and going back where it does not hold what was read.

An offset has a meaning in one log alone. A topic that was deleted and made anew under its name is another
log, and one that lost its end to an unclean election is another one from there on. What was counted stays
counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from service.store.connection import Connection, unavailable_when_away


class TopicProgress:
    """The stored offsets of one topic, of all models.

    Args:
        connection: to Redis.
        progress_keys: names of the hashes that hold a partition's next offset, one of every model.
    """

    def __init__(self, connection: Connection, progress_keys: Callable[[int], Sequence[str]]) -> None:
        self._connection = connection
        self._progress_keys = progress_keys

    def settle(self, partition: int, topic_id: str, first_offset: int) -> int | None:
        """Have the stored offsets be of this topic, from now on.

        Args:
            partition: of the topic.
            topic_id: of the topic that is there now.
            first_offset: first one that it has; offsets of another topic give way to it.

        Returns:
            The highest offset that was of another topic; None where there was none.

        Raises:
            Unavailable: Redis cannot answer now; settling again is harmless.
        """
        given_up = []
        for key in self._progress_keys(partition):
            status, offset = self._connection.run("settle_topic", [key], [topic_id, first_offset])
            if status == b"restarted":
                given_up.append(int(offset))
        return max(given_up, default=None)

    def added_later(self, partition: int, partition_count: int) -> bool:
        """Whether the topic got this partition after it was first read.

        Args:
            partition: of the topic.
            partition_count: partitions that the topic has now.

        Raises:
            Unavailable: Redis cannot answer now; asking again is harmless.
        """
        client = self._connection.client
        counts = []
        with unavailable_when_away():
            for key in self._progress_keys(0):
                client.hsetnx(key, "partition_count", partition_count)
                counts.append(int(client.hget(key, "partition_count")))
        return all(partition >= count for count in counts)

    def rewind(self, partition: int, offset: int) -> None:
        """Go on from an offset below the stored ones.

        Args:
            partition: of the topic.
            offset: of the first record that was not read, though its offset was.

        Raises:
            Unavailable: Redis cannot answer now; rewinding again is harmless.
        """
        keys = self._progress_keys(partition)
        # In one step if it can be: a model that is not rewound would not take what the others read again.
        for together in [[key] for key in keys] if self._connection.clustered else [keys]:
            self._connection.run("rewind_topic", together, [offset])
