"""The HTTP API: what the status page shows, as JSON. Read-only; made from the latest snapshots."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, HTTPException, Path, Query, Request, Response

from service import __version__
from service.domain.errors import NotKnown
from service.monitoring.pipeline import PipelineState
from service.monitoring.pipeline_problems import pipeline_problems
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.activity import Activity, activity
from service.serving.documents.base import Document, Problem
from service.serving.documents.confusion import ConfusionMatrix, confusion_matrix
from service.serving.documents.drifts import GroupDrift, group_drift
from service.serving.documents.group_details import Reliability, Timeline, reliability, timeline
from service.serving.documents.groups import GroupTable, Order, SortKey, group_table
from service.serving.documents.models import ModelState, Overview, model_state, overview
from service.serving.documents.performance_documents import PerformanceState, Recalibration
from service.serving.documents.performances import performance_state, recalibration
from service.serving.documents.pipeline import PipelineHealth, pipeline_health
from service.serving.documents.problems import freshness
from service.statistics.recalibration import FORMS

API_PATH = "/api/v1"

_MOST_GROUPS = 1_000
_MOST_CLASSES = 50

_DESCRIPTION = """\
Credence's estimates of deployed classifiers. Every response about a model is made from its latest snapshot.
It has an `ETag` that changes with the snapshot, or with the latest estimate of performance. Send it back in
`If-None-Match`: 304 means that nothing has changed.
"""

_Route = TypeVar("_Route", bound=Callable[..., Response])

_UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"model": Problem}}


@dataclass(frozen=True)
class SnapshotView:
    """What the API shows: the names of all configured models, the latest snapshots, and the pipeline.

    Attributes:
        pipeline: gives the latest state of the pipeline; None before the first round.
    """

    models: Sequence[str]
    board: Mapping[str, ModelSnapshot]
    tick_seconds: float
    clock: Callable[[], float]
    pipeline: Callable[[], PipelineState | None] = lambda: None

    def snapshot(self, model: str) -> ModelSnapshot:
        """The latest snapshot of a model.

        Raises:
            HTTPException: the model is not configured, or has no snapshot yet.
        """
        if model not in self.models:
            raise HTTPException(404, "the configuration has no model of this name")
        snapshot = self.board.get(model)
        if snapshot is None:
            raise HTTPException(
                404, "there is no snapshot of this model yet; the first round is still running"
            )
        return snapshot


Grouping = Annotated[str, Query(description="name of one of the model's groupings")]
Group = Annotated[str, Query(description="name of one of its groups")]
Assessed = Annotated[str, Path(description="name of one of the model's assessments of performance")]
MapForm = Annotated[str, Path(description="of the map", json_schema_extra={"enum": list(FORMS)})]


def build_api(view: SnapshotView) -> FastAPI:
    """The API as an application of its own, to be mounted."""
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

    @api.get("/models", summary="All models")
    def read_overview() -> Overview:
        snapshots = list(view.board.values())
        return overview(
            view.models,
            snapshots,
            pipeline=view.pipeline(),
            tick_seconds=view.tick_seconds,
            now=view.clock(),
        )

    @api.get("/pipeline", summary="Health of the pipeline", responses=_UNKNOWN)
    def read_pipeline() -> PipelineHealth:
        state = view.pipeline()
        if state is None:
            raise HTTPException(404, "nothing is known of the pipeline yet; the first round is still running")
        return pipeline_health(state, view.clock())

    _add_documents(api, view)
    _add_performance(api, view)
    return api


def _shows(api: FastAPI, path: str, summary: str, document: type[Document]) -> Callable[[_Route], _Route]:
    """Registers a route that answers with a document about one model."""
    return api.get(f"/models/{{model}}{path}", summary=summary, response_model=document, responses=_UNKNOWN)


# Routes are plain functions, which run in a thread pool: a large answer does not hold up a health check.
def _add_documents(api: FastAPI, view: SnapshotView) -> None:
    @_shows(api, "", "One model", ModelState)
    def read_model(model: str, request: Request) -> Response:
        taken, now = view.snapshot(model), view.clock()
        troubles = pipeline_problems(view.pipeline(), now)
        state = partial(model_state, pipeline=troubles, now=now, tick_seconds=view.tick_seconds)
        # Estimates grow old, and consumers stop, and the state says so, while the snapshot stays the same.
        variant = [freshness(taken, now, view.tick_seconds), *(one.key for one in troubles)]
        return _answer(request, taken, state, variant=" ".join(variant))

    @_shows(api, "/groups", "Groups of one grouping", GroupTable)
    def read_groups(  # noqa: PLR0917 - the parameters of the query
        model: str,
        request: Request,
        grouping: Grouping,
        sort: SortKey = "evidence",
        order: Annotated[Order | None, Query(description="the most alarming first, if absent")] = None,
        search: Annotated[str, Query(description="part of a group's name")] = "",
        group: Annotated[str | None, Query(description="only the group of exactly this name")] = None,
        limit: Annotated[int, Query(ge=1, le=_MOST_GROUPS)] = 100,
        offset: Annotated[int, Query(ge=0)] = 0,
    ) -> Response:
        def table(snapshot: ModelSnapshot) -> GroupTable:
            return group_table(
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

    @_shows(api, "/reliability", "Accuracy by score of one group", Reliability)
    def read_reliability(model: str, request: Request, grouping: Grouping, group: Group) -> Response:
        return _answer(request, view.snapshot(model), lambda taken: reliability(taken, grouping, group))

    @_shows(api, "/timeline", "History of the estimates of one group", Timeline)
    def read_timeline(model: str, request: Request, grouping: Grouping, group: Group) -> Response:
        return _answer(request, view.snapshot(model), lambda taken: timeline(taken, grouping, group))

    @_shows(api, "/drift", "Drift of one group", GroupDrift)
    def read_drift(model: str, request: Request, grouping: Grouping, group: Group) -> Response:
        return _answer(request, view.snapshot(model), lambda taken: group_drift(taken, grouping, group))

    @_shows(api, "/confusion", "The confusion matrix", ConfusionMatrix)
    def read_confusion(
        model: str,
        request: Request,
        classes: Annotated[int, Query(ge=2, le=_MOST_CLASSES, description="most classes shown")] = 12,
    ) -> Response:
        return _answer(request, view.snapshot(model), lambda taken: confusion_matrix(taken, classes=classes))

    @_shows(api, "/activity", "Open label requests and recent labels", Activity)
    def read_activity(model: str, request: Request) -> Response:
        return _answer(request, view.snapshot(model), activity)


def _add_performance(api: FastAPI, view: SnapshotView) -> None:
    @_shows(
        api,
        "/performance/{assessment}",
        "Performance of a binary classifier, at every threshold",
        PerformanceState,
    )
    def read_performance(model: str, assessment: Assessed, request: Request) -> Response:
        return _answer(
            request,
            view.snapshot(model),
            lambda taken: performance_state(taken, assessment),
            assessment=assessment,
        )

    @_shows(
        api,
        "/performance/{assessment}/recalibration/{form}",
        "A map from scores to probabilities, as a file",
        Recalibration,
    )
    def read_recalibration(model: str, assessment: Assessed, form: MapForm, request: Request) -> Response:
        return _answer(
            request,
            view.snapshot(model),
            lambda taken: recalibration(taken, assessment, form),
            assessment=assessment,
            # Names are of letters, digits, dots, dashes and underscores alone.
            file=f"{model}-{assessment}-{form}.json",
        )


def _answer(
    request: Request,
    snapshot: ModelSnapshot,
    document: Callable[[ModelSnapshot], Document],
    *,
    assessment: str | None = None,
    variant: str = "",
    file: str | None = None,
) -> Response:
    """The document as JSON, or 304 to clients that have it; then it is not even made.

    The ETag depends on when the snapshot was taken, or the performance of `assessment` was last estimated,
    which happens less often; and on the `variant` of a document that depends on the time. With `file` the
    answer is saved under this name.

    Raises:
        HTTPException: what is asked for does not exist.
    """
    estimated = snapshot.performances.get(assessment or "", snapshot)
    identity = f"{__version__} {estimated.taken_at!r} {variant} {request.url.path}?{request.url.query}"
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
