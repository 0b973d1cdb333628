"""Options with which `credence predictions send` reads the columns of a sample as a proposal does."""

from __future__ import annotations

import re
from collections.abc import Sequence

from service.app.files.columns import ATTRIBUTE, PROBABILITY
from service.app.proposal.attributes import Attribute, is_read_by_its_name
from service.app.proposal.classes import Classes
from service.app.proposal.profile import Profile
from service.app.proposal.roles import Roles


def renamed_columns(
    profile: Profile, roles: Roles, classes: Classes, attributes: Sequence[Attribute]
) -> list[str]:
    """Options `FIELD=COLUMN` that make `credence predictions send` read the columns as the proposal does."""
    renamed = []
    for field, role in roles.fields.items():
        wanted = role.column if field != "true_class" else ""
        exists = field in profile.columns
        if field != "true_class" and wanted != (field if exists else ""):
            renamed.append(f"{field}={wanted}")
    columns = dict(zip(classes.columns, classes.names, strict=True)) if classes.columns else {}
    renamed += [
        f"{PROBABILITY}{name}={column}" for column, name in columns.items() if column != PROBABILITY + name
    ]
    renamed += [
        f"{name}=" for name in profile.columns if name.startswith(PROBABILITY) and name not in columns
    ]
    renamed += [
        f"{ATTRIBUTE}{each.name}={each.column}" for each in attributes if not is_read_by_its_name(each)
    ]
    return renamed


def send_command(renamed: Sequence[str], path: str, config: str, given: Sequence[str]) -> str:
    """The command that sends the file of a sample; `given` are the options that say how the file is read."""
    columns = "".join(f" --column {_quoted(each)}" for each in renamed)
    options = "".join(f" {_quoted(each)}" for each in given)
    return f"credence predictions send {_quoted(path)} --config {_quoted(config)}{options}{columns}"


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w./=-]+", text, re.ASCII) else "'" + text.replace("'", "'\\''") + "'"
