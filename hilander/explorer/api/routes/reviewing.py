"""Routes of the review: the queue, actions, the log, exports."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from hilander.explorer.api.exports import export_labels, export_pairs
from hilander.explorer.api.payloads import reviewing
from hilander.explorer.api.payloads.overview import describe_run
from hilander.explorer.api.routes.reading import Limit, Offset, Text
from hilander.explorer.session.explorer import Explorer

_MEDIA = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}
Format = Annotated[str, Query(pattern="^(csv|json|parquet)$")]


class Action(BaseModel):
    """Arguments of an action. The description of the route lists those of each kind."""

    model_config = ConfigDict(extra="forbid", strict=True)

    groups: list[int] | None = None
    group: int | None = None
    parts: list[list[int]] | None = None
    level: int | None = None
    rows: list[int] | None = None
    to: int | None = None
    name: str | None = Field(None, max_length=1000)
    junk: bool | None = None
    key: str | None = Field(None, max_length=100)
    verdict: str | None = Field(None, max_length=20)
    client_key: str | None = Field(None, min_length=8, max_length=100)


def make_review_routes(explorer: Explorer) -> APIRouter:
    """Return the routes of the review."""
    router = APIRouter(prefix="/api/review", tags=["review"], default_response_class=JSONResponse)
    _add_reading(router, explorer)

    @router.post("/{kind}")
    def act(kind: str, action: Action) -> Any:
        """Apply an action; it is on disk when the answer is sent.

        - `merge` takes `groups`, two or more clusters
        - `split` takes `group`, `parts` and `level`: each list of parts of that level becomes one
          new cluster
        - `move` takes `rows` and `to`, a cluster; without `to` the rows become a new cluster
        - `name` takes `group` and `name`; an empty name removes the name
        - `junk` takes `group` and `junk`
        - `answer` takes `key` of a question and `verdict`: same, different or skip
        - `undo` and `redo` take nothing

        A `client_key` identifies the request: a second request with the same key changes nothing.
        """
        body = action.model_dump(exclude_none=True, exclude={"client_key"})
        first_new = explorer.review.state.next_group
        event = explorer.act(kind, body, action.client_key)
        state = explorer.review.state
        return JSONResponse(
            {
                "seq": event.seq,
                "kind": event.kind,
                "text": reviewing.describe_event(event),
                "new_clusters": list(range(first_new, state.next_group)),
                "review": describe_run(explorer)["review"],
            }
        )

    return router


def _add_reading(router: APIRouter, explorer: Explorer) -> None:
    @router.get("/queue")
    def read_queue(kind: Text = "merge", offset: Offset = 0, limit: Limit = 10) -> Any:
        """Open questions: doubtful merges (merge) or merge candidates (pair)."""
        return JSONResponse(reviewing.list_questions(explorer, kind, offset, limit))

    @router.get("/log")
    def read_log(offset: Offset = 0, limit: Limit = 50) -> Any:
        """The log of actions, the latest first."""
        return JSONResponse(reviewing.list_events(explorer, offset, limit))

    @router.get("/conflicts")
    def read_conflicts() -> Any:
        """Decisions that could not be carried over from an earlier clustering."""
        return JSONResponse({"items": explorer.carried_conflicts()})

    @router.get("/export/pairs", response_class=Response)
    def read_pairs(format: Format = "csv") -> Response:
        """Must-link and cannot-link pairs."""
        return _download(export_pairs(explorer, format), "pairs", format)

    @router.get("/export/labels", response_class=Response)
    def read_labels(format: Format = "csv") -> Response:
        """The corrected labels: id, cluster (-1 for junk), name."""
        return _download(export_labels(explorer, format), "labels", format)


def _download(content: bytes, name: str, kind: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}.{kind}"'}
    return Response(content, media_type=_MEDIA[kind], headers=headers)
