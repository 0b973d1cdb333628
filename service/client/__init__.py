"""For users: log predictions from a model, and answer label requests, over Kafka in a few lines.

`Producer.log` returns at once whatever Kafka does; `Labeller` calls a function with every label request.
"""

from service.client.labeller import SKIP, Labeller
from service.client.producer import Producer

__all__ = ["SKIP", "Labeller", "Producer"]
