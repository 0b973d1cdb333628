"""The topic that stored offsets belong to, and rewinding them when it lost records.

An offset means something in one log only. A topic that was deleted and created again is another log, and so
is, from there on, one that lost its end in an unclean leader election. What was counted stays counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from service.store.connection import Connection, translate_redis_errors


class TopicProgress:
    """The stored offsets of one topic, of all models.

    Every method raises `Unavailable` while Redis cannot answer, and may then be called again. `progress_keys`
    are names of the hashes that hold a partition's next offset, one of every model.
    """

    def __init__(self, connection: Connection, progress_keys: Callable[[int], Sequence[str]]) -> None:
        self._connection = connection
        self._progress_keys = progress_keys

    def bind_topic(self, partition: int, topic_id: str, first_offset: int) -> int | None:
        """Bind the stored offsets of a partition to the topic with this id.

        Offsets that belong to another topic are replaced by `first_offset`, the first one of this topic.
        Returns the highest of those replaced; None if there was none.
        """
        replaced = []
        for key in self._progress_keys(partition):
            status, offset = self._connection.run("bind_topic", [key], [topic_id, first_offset])
            if status == b"restarted":
                replaced.append(int(offset))
        return max(replaced, default=None)

    def is_stored(self, partition: int) -> bool:
        """Whether Redis holds an offset of this partition, of any model."""
        with translate_redis_errors():
            return any(
                self._connection.client.hget(key, "next_offset") is not None
                for key in self._progress_keys(partition)
            )

    def added_later(self, partition: int, partition_count: int) -> bool:
        """Whether the topic, with `partition_count` partitions now, got this one after it was first read."""
        client = self._connection.client
        counts = []
        with translate_redis_errors():
            for key in self._progress_keys(0):
                client.hsetnx(key, "partition_count", partition_count)
                counts.append(int(client.hget(key, "partition_count")))
        return all(partition >= count for count in counts)

    def rewind(self, partition: int, offset: int) -> None:
        """Continue from an offset below the stored ones: the first record there was never read."""
        keys = self._progress_keys(partition)
        # In one step if it can be: a model that is not rewound would not take what the others read again.
        for together in [[key] for key in keys] if self._connection.clustered else [keys]:
            self._connection.run("rewind_topic", together, [offset])
