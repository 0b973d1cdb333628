"""Files in which Redis keeps its data: copied, put back, and made of one another."""

from __future__ import annotations

import shutil
from pathlib import Path

import redis
from harness import wait_for

from service.demo.ports import free_port
from service.demo.servers import EmbeddedRedis


def append_only_of(folder: Path) -> Path:
    """Where Redis keeps its append-only file: a folder since version 7."""
    since_7 = folder / "appendonlydir"
    return since_7 if since_7.exists() else folder / "appendonly.aof"


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def remove(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def write_append_only_file(folder: Path) -> None:
    """Make an append-only file of the snapshot in a folder."""
    with EmbeddedRedis(folder=folder, port=free_port(), options={"appendonly": "no"}) as loading:
        client = redis.Redis(port=loading.port)
        client.config_set("appendonly", "yes")
        wait_for(
            lambda: (
                not any(
                    client.info("persistence")[f"aof_rewrite_{state}"]
                    for state in ("in_progress", "scheduled")
                )
            ),
            seconds=20,
            what="the append-only file",
        )
        client.close()
