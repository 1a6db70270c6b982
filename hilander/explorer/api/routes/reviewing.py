"""Routes of the review: the queue, actions, the log, exports."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from hilander.explorer.api.exports import export_labels, export_pairs
from hilander.explorer.api.payloads import reviewing
from hilander.explorer.api.payloads.overview import describe_run
from hilander.explorer.api.payloads.paging import MOST_PER_PAGE
from hilander.explorer.api.payloads.targets import check_rows, list_targets
from hilander.explorer.api.routes.reading import Limit, Offset, Text
from hilander.explorer.review.wording import describe_event
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
    key: str | None = Field(None, max_length=200)
    exceptions: list[int] | None = Field(None, alias="except")
    verdict: str | None = Field(None, max_length=20)
    seq: int | None = None
    conflict: int | None = None
    choice: str | None = Field(None, max_length=40)
    client_key: str | None = Field(None, min_length=8, max_length=100)


class Wanted(BaseModel):
    """What a target is wanted for: a cluster or items, and a text to search for."""

    model_config = ConfigDict(extra="forbid", strict=True)

    group: int | None = None
    rows: list[int] | None = None
    search: str = Field("", max_length=200)
    limit: int = Field(12, ge=1, le=MOST_PER_PAGE)
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
        - `answer` takes `key` of a question and `verdict`: same, different or skip; `except` lists
          the pieces for which the opposite is true
        - `solve` takes `conflict`, the number of a conflict, and `choice`, the key of a choice
        - `undo` takes `seq`, the number of an action; without it, the last one is undone
        - `redo` takes nothing

        A `client_key` identifies the request: a second request with the same key changes nothing.
        """
        body = action.model_dump(exclude_none=True, exclude={"client_key"}, by_alias=True)
        event = explorer.act(kind, body, action.client_key)
        return JSONResponse(
            {
                "seq": event.seq,
                "kind": event.kind,
                "text": describe_event(event, {one.seq: one for one in explorer.review.log}),
                "new_clusters": list(event.payload.get("new", ())),
                "review": describe_run(explorer)["review"],
            }
        )

    return router


def _add_reading(router: APIRouter, explorer: Explorer) -> None:
    @router.get("/queue")
    def read_queue(kind: Text = "all", offset: Offset = 0, limit: Limit = 10) -> Any:
        """Open questions, those first whose answer is expected to change the most.

        Kinds: `part` (parts that may leave), `odd` (single items that may leave), `pair` (clusters
        that may join), `lonely` (single items that may join), `link` (merges of a run without a
        graph).
        """
        return JSONResponse(reviewing.list_questions(explorer, kind, offset, limit))

    @router.post("/targets")
    def find_targets(wanted: Wanted) -> Any:
        """Clusters that a cluster (`group`) or items (`rows`) may belong to, likeliest first.

        `search` restricts them to a number, part of a name, or part of a member's id.
        """
        grouping = explorer.reviewed()
        rows = check_rows(grouping, wanted.rows, wanted.group)
        return JSONResponse({"items": list_targets(grouping, rows, wanted.search, wanted.limit)})

    @router.get("/log")
    def read_log(offset: Offset = 0, limit: Limit = 50) -> Any:
        """The log of actions, the latest first."""
        return JSONResponse(reviewing.list_events(explorer, offset, limit))

    @router.get("/conflicts")
    def read_conflicts() -> Any:
        """Decisions of an earlier clustering that do not fit this one, with their choices."""
        return JSONResponse({"items": reviewing.list_conflicts(explorer)})

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
