"""Routes that read: each view as JSON, and images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from hilander.explorer.api.payloads import clusters as cluster_views
from hilander.explorer.api.payloads import comparing, cutting, overview, points
from hilander.explorer.api.payloads.paging import MOST_PER_PAGE
from hilander.explorer.api.watching import watch_review
from hilander.explorer.session.explorer import REVIEWED, Explorer

Offset = Annotated[int, Query(ge=0, lt=1 << 40, description="first entry of the page")]
Limit = Annotated[
    int, Query(ge=1, le=MOST_PER_PAGE, description="number of entries of the page at most")
]
Text = Annotated[str, Query(max_length=200)]
Whole = Annotated[int, Query(ge=0, lt=1 << 40)]


def make_reading_routes(explorer: Explorer) -> APIRouter:
    """Return the routes that change nothing."""
    router = APIRouter(prefix="/api", default_response_class=JSONResponse)
    _add_overview(router, explorer)
    _add_cut(router, explorer)
    _add_clusters(router, explorer)
    _add_points(router, explorer)
    _add_comparison(router, explorer)
    return router


def _add_overview(router: APIRouter, explorer: Explorer) -> None:
    @router.get("/overview", tags=["overview"])
    def read_overview() -> Any:
        """Counts by level, sizes, scores if labels are known, settings, state of the review."""
        return JSONResponse(overview.describe_run(explorer))

    @router.get("/events", tags=["overview"], response_class=StreamingResponse)
    async def read_events() -> StreamingResponse:
        """Server-sent events: the run and the revision of the review, when one of them changes."""
        return StreamingResponse(watch_review(explorer), media_type="text/event-stream")

    @router.get("/search", tags=["overview"])
    def read_search(q: Text = "", limit: Limit = 12) -> Any:
        """Find points by id and clusters by name or number."""
        return JSONResponse(points.search_run(explorer, q, limit))

    @router.get("/tree", tags=["overview"])
    def read_tree(start: Whole = 0, end: Whole | None = None, min_size: Whole = 1) -> Any:
        """The hierarchy as an icicle: each cluster is a range of one order of the points."""
        return JSONResponse(cluster_views.build_icicle(explorer, start, end, min_size))


def _add_cut(router: APIRouter, explorer: Explorer) -> None:
    @router.get("/cut", tags=["overview"])
    def read_cut(p: Annotated[float, Query(ge=0, le=1)] = 0.5, min_size: Whole = 1) -> Any:
        """The clusters of the merge tree at a probability: counts, ranges, the largest ones."""
        return JSONResponse(cutting.cut_tree(explorer, p, min_size))


def _add_clusters(router: APIRouter, explorer: Explorer) -> None:
    @router.get("/clusters", tags=["clusters"])
    def read_clusters(
        level: Text = REVIEWED,
        sort: Text = "size",
        reverse: bool = False,
        search: Text = "",
        min_size: Whole = 1,
        max_size: Whole | None = None,
        state: Text = "all",
        offset: Offset = 0,
        limit: Limit = 24,
    ) -> Any:
        """Clusters as cards, sorted, searched and filtered."""
        query = cluster_views.ClusterQuery(
            sort, reverse, search, min_size, max_size, state, offset, limit
        )
        return JSONResponse(cluster_views.list_clusters(explorer.grouping(level), query))

    @router.get("/clusters/{level}/{cluster}", tags=["clusters"])
    def read_cluster(level: str, cluster: int) -> Any:
        """One cluster: numbers, marks, identities, the cluster above it."""
        return JSONResponse(cluster_views.describe_cluster(explorer.grouping(level), cluster))

    @router.get("/clusters/{level}/{cluster}/members", tags=["clusters"])
    def read_members(
        level: str, cluster: int, offset: Offset = 0, limit: Limit = 60, sort: Text = ""
    ) -> Any:
        """Members of a cluster: the peak, then by falling density; or by rising `confidence`."""
        grouping = explorer.grouping(level)
        return JSONResponse(cluster_views.list_members(grouping, cluster, offset, limit, sort))

    @router.get("/clusters/{level}/{cluster}/parts", tags=["clusters"])
    def read_parts(
        level: str, cluster: int, at: int | None = None, offset: Offset = 0, limit: Limit = 30
    ) -> Any:
        """The parts of a cluster, with the links that joined them.

        Parts are clusters of the level `at`, by default the highest level below that has several;
        -1 gives the branches that are linked to the peak.
        """
        grouping = explorer.grouping(level)
        return JSONResponse(cluster_views.list_parts(grouping, cluster, at, offset, limit))

    @router.get("/clusters/{level}/{cluster}/nearest", tags=["clusters"])
    def read_nearest(level: str, cluster: int, limit: Limit = 12) -> Any:
        """The nearest other clusters, by linkage."""
        grouping = explorer.grouping(level)
        return JSONResponse(cluster_views.list_nearest(grouping, cluster, limit))


def _add_points(router: APIRouter, explorer: Explorer) -> None:
    @router.get("/points/{row}", tags=["points"])
    def read_point(row: int) -> Any:
        """One point: columns, clusters, neighbours with affinity and linkage, path to its peak."""
        return JSONResponse(points.describe_point(explorer, row))

    @router.get("/items/{row}/image", tags=["points"], response_class=Response)
    def read_image(row: int, v: Text = "") -> Response:
        """The thumbnail of an item, as PNG.

        `v` is the key of the image, as the lists of items give it. A key of another run or of
        another image is refused.
        """
        return _send_image(explorer, row, v, explorer.run.images.thumbnail)

    @router.get("/items/{row}/full", tags=["points"], response_class=Response)
    def read_full_image(row: int, v: Text = "") -> Response:
        """The image of an item in full size, at most 1600 pixels on a side. `v` as for `image`."""
        return _send_image(explorer, row, v, explorer.run.images.full_size)

    @router.get("/map", tags=["map"])
    def read_map(offset: Offset = 0, limit: Limit = MOST_PER_PAGE) -> Any:
        """One page of the map of peaks."""
        return JSONResponse(points.list_map_points(explorer, offset, limit))

    @router.get("/map/centres", tags=["map"])
    def read_centres(clusters: Annotated[str, Query(max_length=1000)] = "") -> Any:
        """Name, size and picture of some clusters; their numbers have commas in between."""
        return JSONResponse(points.describe_centres(explorer, clusters))

    @router.get("/map.bin", tags=["map"], response_class=Response)
    def read_map_bytes(most: Whole | None = None) -> Response:
        """The map as columns with 4 bytes an entry; of more than `most` peaks, that many.

        The columns are row, x, y, cluster, level, confidence and the size of the cluster.
        """
        return Response(points.encode_map(explorer, most), media_type="application/octet-stream")


def _add_comparison(router: APIRouter, explorer: Explorer) -> None:
    @router.get("/compare", tags=["compare"])
    def read_comparison(key: Text = "labels") -> Any:
        """The reviewed clusters against another partition: scores, counts, matrix."""
        return JSONResponse(comparing.compare_partitions(explorer, key))

    @router.get("/compare/differences", tags=["compare"])
    def read_differences(
        key: Text = "labels", kind: Text = "split", offset: Offset = 0, limit: Limit = 12
    ) -> Any:
        """Clusters that one partition splits and the other merges, the largest difference first."""
        return JSONResponse(comparing.list_differences(explorer, key, kind, offset, limit))


def _send_image(
    explorer: Explorer, row: int, key: str, read: Callable[[int], bytes | None]
) -> Response:
    """Answer with an image. It may be cached for ever under its key, and never without one."""
    known = explorer.run.image_key(row) if 0 <= row < explorer.run.n_points else None
    if known is None:
        raise HTTPException(404, "the item has no image that can be shown")
    if key not in ("", known):
        raise HTTPException(404, "the image is of another run or has changed; reload the page")
    picture = read(row)
    if picture is None:
        raise HTTPException(404, "the item has no image that can be shown")
    kind = "image/png" if picture.startswith(b"\x89PNG") else "image/jpeg"
    kept = "private, max-age=31536000, immutable" if key else "no-store"
    return Response(picture, media_type=kind, headers={"cache-control": kept})
