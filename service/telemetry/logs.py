"""Structured logs: one JSON object a line, no payloads, no secrets."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Writes time, level, logger, message, and whatever was passed as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """One JSON object."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record is more than the Kafka client's account of a failure that Credence logs itself.

    The client writes hundreds of lines in an outage. What it has not foreseen comes with an exception.
    """
    return not record.name.startswith("kafka.") or bool(record.exc_info) or record.levelno >= logging.CRITICAL


def configure_logs(level: str) -> None:
    """Send all logs to standard error as JSON lines; those of libraries from level warning.

    The Kafka client's are left out, except for exceptions and with level debug.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    if level != "debug":
        handler.addFilter(_is_news)
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    # Any client can cause warnings (requests that are not HTTP, too many connections), and fill the logs.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    for package in ("service", "consumers"):
        logging.getLogger(package).setLevel(level.upper())
