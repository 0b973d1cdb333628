"""The HTTP API: what the status page shows, as JSON. Read-only; made from the latest snapshots."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Path, Query, Request, Response

from service import __version__
from service.domain.errors import NotKnown
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents import groups, performances, states
from service.serving.documents.drift_measures import GroupDrift
from service.serving.documents.drifts import group_drift
from service.serving.documents.group_documents import (
    ConfusionMatrix,
    GroupTable,
    Reliability,
    SortKey,
    Timeline,
)
from service.serving.documents.performance_documents import PerformanceState, Recalibration
from service.serving.documents.schemas import Activity, Document, ModelState, Overview, Problem
from service.statistics.recalibration import FORMS

API_PATH = "/api/v1"

_MOST_GROUPS = 1_000
_MOST_CLASSES = 50

_DESCRIPTION = """\
What Credence believes of deployed classifiers. Every answer about a model is made from its latest snapshot
and carries an `ETag` that changes with it, or, of performance, with what was learned last: ask again with
`If-None-Match`, and 304 says that nothing is new.
"""

_UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"model": Problem}}


@dataclass(frozen=True)
class SnapshotView:
    """What the API looks at.

    Attributes:
        models: names of all models that are configured.
        board: the latest snapshot of every model that has one.
        tick_seconds: time between two rounds.
        clock: seconds since the epoch.
    """

    models: Sequence[str]
    board: Mapping[str, ModelSnapshot]
    tick_seconds: float
    clock: Callable[[], float]

    def snapshot(self, model: str) -> ModelSnapshot:
        """The latest snapshot of a model.

        Raises:
            HTTPException: the model is not configured, or has no snapshot yet.
        """
        if model not in self.models:
            raise HTTPException(404, "the configuration has no model of this name")
        snapshot = self.board.get(model)
        if snapshot is None:
            raise HTTPException(404, "there is no snapshot of this model yet")
        return snapshot


Grouping = Annotated[str, Query(description="name of one of the model's groupings")]
Group = Annotated[str, Query(description="name of one of its groups")]
Assessed = Annotated[str, Path(description="name of one of the model's assessments of performance")]
MapForm = Annotated[str, Path(description="of the map", json_schema_extra={"enum": list(FORMS)})]


def build_api(view: SnapshotView) -> FastAPI:
    """The API as an application of its own, to be mounted.

    Args:
        view: of the snapshots.
    """
    # No interactive documentation: it would load its scripts from elsewhere.
    api = FastAPI(
        title="Credence",
        version=__version__,
        description=_DESCRIPTION,
        servers=[{"url": API_PATH}],
        root_path_in_servers=False,
        docs_url=None,
        redoc_url=None,
    )

    # Plain functions run in a thread pool, so that a large answer does not hold up a health check.
    @api.get("/models", summary="All models")
    def read_overview() -> Overview:
        snapshots = list(view.board.values())
        return states.overview(view.models, snapshots, tick_seconds=view.tick_seconds, now=view.clock())

    @api.get("/models/{model}", summary="One model", response_model=ModelState, responses=_UNKNOWN)
    def read_model(model: str, request: Request) -> Response:
        return _answer(request, view.snapshot(model), states.model_state)

    @api.get(
        "/models/{model}/groups",
        summary="Groups of one grouping",
        response_model=GroupTable,
        responses=_UNKNOWN,
    )
    def read_groups(  # noqa: PLR0917 - the parameters of the query
        model: str,
        request: Request,
        grouping: Grouping,
        sort: SortKey = "evidence",
        order: Annotated[groups.Order | None, Query(description="the most alarming first, if absent")] = None,
        search: Annotated[str, Query(description="part of a group's name")] = "",
        group: Annotated[str | None, Query(description="this very group alone")] = None,
        limit: Annotated[int, Query(ge=1, le=_MOST_GROUPS)] = 100,
        offset: Annotated[int, Query(ge=0)] = 0,
    ) -> Response:
        def table(snapshot: ModelSnapshot) -> GroupTable:
            return groups.group_table(
                snapshot,
                grouping,
                sort=sort,
                order=order,
                search=search,
                group=group,
                limit=limit,
                offset=offset,
            )

        return _answer(request, view.snapshot(model), table)

    @api.get(
        "/models/{model}/reliability",
        summary="Accuracy by score of one group",
        response_model=Reliability,
        responses=_UNKNOWN,
    )
    def read_reliability(model: str, request: Request, grouping: Grouping, group: Group) -> Response:
        return _answer(
            request, view.snapshot(model), lambda taken: groups.reliability(taken, grouping, group)
        )

    @api.get(
        "/models/{model}/timeline",
        summary="What was believed of one group as time went by",
        response_model=Timeline,
        responses=_UNKNOWN,
    )
    def read_timeline(model: str, request: Request, grouping: Grouping, group: Group) -> Response:
        return _answer(request, view.snapshot(model), lambda taken: groups.timeline(taken, grouping, group))

    @api.get(
        "/models/{model}/drift",
        summary="How far the recent traffic of one group is from its reference",
        response_model=GroupDrift,
        responses=_UNKNOWN,
    )
    def read_drift(model: str, request: Request, grouping: Grouping, group: Group) -> Response:
        return _answer(request, view.snapshot(model), lambda taken: group_drift(taken, grouping, group))

    @api.get(
        "/models/{model}/confusion",
        summary="The confusion matrix",
        response_model=ConfusionMatrix,
        responses=_UNKNOWN,
    )
    def read_confusion(
        model: str,
        request: Request,
        classes: Annotated[int, Query(ge=2, le=_MOST_CLASSES, description="most classes shown")] = 12,
    ) -> Response:
        return _answer(
            request, view.snapshot(model), lambda taken: groups.confusion_matrix(taken, classes=classes)
        )

    @api.get(
        "/models/{model}/activity",
        summary="Label requests and labels of late",
        response_model=Activity,
        responses=_UNKNOWN,
    )
    def read_activity(model: str, request: Request) -> Response:
        return _answer(request, view.snapshot(model), states.activity)

    _add_performance(api, view)
    return api


def _add_performance(api: FastAPI, view: SnapshotView) -> None:
    @api.get(
        "/models/{model}/performance/{assessment}",
        summary="How a binary classifier does, at every threshold",
        response_model=PerformanceState,
        responses=_UNKNOWN,
    )
    def read_performance(model: str, assessment: Assessed, request: Request) -> Response:
        snapshot = view.snapshot(model)
        return _answer(
            request,
            snapshot,
            lambda taken: performances.performance_state(taken, assessment),
            made_at=_learned_at(snapshot, assessment),
        )

    @api.get(
        "/models/{model}/performance/{assessment}/recalibration/{form}",
        summary="A map from scores to probabilities, as a file",
        response_model=Recalibration,
        responses=_UNKNOWN,
    )
    def read_recalibration(model: str, assessment: Assessed, form: MapForm, request: Request) -> Response:
        snapshot = view.snapshot(model)
        return _answer(
            request,
            snapshot,
            lambda taken: performances.recalibration(taken, assessment, form),
            made_at=_learned_at(snapshot, assessment),
            # Names are of letters, digits, dots, dashes and underscores alone.
            file=f"{model}-{assessment}-{form}.json",
        )


def _learned_at(snapshot: ModelSnapshot, assessment: str) -> float | None:
    """When it was learned what is known of the performance, which is more seldom than rounds are."""
    there = snapshot.performances.get(assessment)
    return None if there is None else there.taken_at


def _answer(
    request: Request,
    snapshot: ModelSnapshot,
    document: Callable[[ModelSnapshot], Document],
    *,
    made_at: float | None = None,
    file: str | None = None,
) -> Response:
    """The document as JSON, or 304 to those who have it; only then is it not even made.

    Args:
        request: that is answered.
        snapshot: of the model.
        document: what it says.
        made_at: when what it says was known; when the snapshot was taken, if absent.
        file: name under which it is saved; shown, if absent.

    Raises:
        HTTPException: what is asked for is not there.
    """
    known_at = snapshot.taken_at if made_at is None else made_at
    identity = f"{__version__} {known_at!r} {request.url.path}?{request.url.query}"
    headers = {
        "ETag": f'"{hashlib.blake2b(identity.encode(), digest_size=12).hexdigest()}"',
        "Cache-Control": "no-cache",
    }
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    try:
        body = document(snapshot).model_dump_json()
    except NotKnown as error:
        raise HTTPException(404, str(error)) from error
    if file is not None:
        headers["Content-Disposition"] = f'attachment; filename="{file}"'
    return Response(body, media_type="application/json", headers=headers)
