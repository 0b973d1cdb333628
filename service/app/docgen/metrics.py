"""The page `docs/metrics.md`, made from the catalogue."""

from __future__ import annotations

from service.app.docgen.generated_files import page_template
from service.app.docgen.schemas import table
from service.serving.prometheus import CATALOGUE


def metrics_page() -> str:
    """The text of `docs/metrics.md`."""
    rows = [
        (
            f"`{spec.name}`",
            spec.kind,
            spec.unit,
            ", ".join(f"`{label}`" for label in spec.labels) or "none",
            spec.meaning.replace("__other__", "`__other__`"),
        )
        for spec in CATALOGUE
    ]
    return page_template("metrics.md").format(
        metrics=table(("metric", "type", "unit", "labels", "meaning"), rows)
    )
