"""The explorer's server: thin routes over the payloads."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from hilander.errors import FileFormatError, HiLanderError, LevelError, OutputError
from hilander.explorer.api.routes.reading import make_reading_routes
from hilander.explorer.api.routes.reviewing import make_review_routes
from hilander.explorer.api.safety import Guard, SafetyMiddleware, error_body
from hilander.explorer.session.explorer import Explorer

_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_TITLE = "Hi-LANDER explorer"
# HTTP status and code of each error; an error without an entry has those of its base class.
_STATUSES: dict[type[HiLanderError], tuple[int, str]] = {
    HiLanderError: (400, "bad_request"),
    LevelError: (404, "not_found"),
    FileFormatError: (500, "damaged"),
    OutputError: (507, "not_written"),
}


class ErrorText(BaseModel):
    """Code and message of an error."""

    code: str
    message: str


class ErrorBody(BaseModel):
    """Body of every error."""

    error: ErrorText


def create_app(explorer: Explorer | None, guard: Guard, problem: str | None = None) -> Any:
    """Create the application.

    Parameters
    ----------
    explorer : Explorer or None
        None if the run could not be opened.
    guard : Guard
    problem : str, optional
        Why the run could not be opened; every page shows it.

    Returns
    -------
    app : ASGI application
    """
    app = FastAPI(
        title=_TITLE,
        description="Every view of the explorer as JSON. Lists are paged: offset, limit, next.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        responses={"4XX": {"model": ErrorBody, "description": "The body of every error"}},
    )
    _add_error_handlers(app)
    if explorer is None:
        _serve_problem(app, problem or "the run could not be opened")
    else:
        app.include_router(make_reading_routes(explorer))
        app.include_router(make_review_routes(explorer))
        _serve_page(app, guard)
    return SafetyMiddleware(app, guard)


def _serve_page(app: FastAPI, guard: Guard) -> None:
    # All files are read once under fixed names, so no requested path reaches the disk.
    static = _read_static()
    index = static.pop("index.html").decode().replace("{{token}}", escape(guard.page_token))

    @app.get("/", include_in_schema=False)
    def page() -> HTMLResponse:
        return HTMLResponse(index)

    @app.get("/api", include_in_schema=False)
    def api_page() -> Response:
        return Response(static["api.html"], media_type="text/html")

    @app.get("/static/{name:path}", include_in_schema=False)
    def asset(name: str) -> Response:
        if name not in static:
            raise HTTPException(404, "there is no such file")
        kind = next((kind for end, kind in _TYPES.items() if name.endswith(end)), "text/plain")
        return Response(static[name], media_type=kind, headers={"cache-control": "no-cache"})


def _serve_problem(app: FastAPI, problem: str) -> None:
    static = _read_static()
    page = static["problem.html"].decode().replace("{{problem}}", escape(problem))

    @app.get("/static/{name:path}", include_in_schema=False)
    def asset(name: str) -> Response:
        if name not in ("base.css",):
            raise HTTPException(404, "there is no such file")
        return Response(static[name], media_type="text/css")

    @app.get("/api/{_:path}", include_in_schema=False)
    def no_api(_: str) -> JSONResponse:
        return JSONResponse(error_body("no_run", problem), 503)

    @app.get("/{_:path}", include_in_schema=False)
    def no_page(_: str) -> HTMLResponse:
        return HTMLResponse(page, 503)


def _add_error_handlers(app: FastAPI) -> None:
    """Send every error in the same form, without a traceback."""

    for kind, (status, code) in _STATUSES.items():
        app.add_exception_handler(kind, _answer_with(status, code))

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return JSONResponse(error_body("bad_request", f"{where}: {first['msg']}"), 422)

    @app.exception_handler(HTTPException)
    def refused(_: Request, error: HTTPException) -> JSONResponse:
        code = "not_found" if error.status_code == 404 else "refused"
        return JSONResponse(error_body(code, str(error.detail)), error.status_code)

    app.add_exception_handler(Exception, _unexpected)


def _answer_with(status: int, code: str) -> Callable[[Request, Exception], JSONResponse]:
    def answer(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse(error_body(code, str(error)), status)

    return answer


def _unexpected(_: Request, error: Exception) -> JSONResponse:
    text = f"unexpected {type(error).__name__}; the terminal shows the details"
    return JSONResponse(error_body("internal", text), 500)


def _read_static() -> dict[str, bytes]:
    folder = files("hilander.explorer") / "static"
    found: dict[str, bytes] = {}
    for entry in folder.iterdir():
        if entry.is_file():
            found[entry.name] = entry.read_bytes()
        elif entry.is_dir():
            found |= {f"{entry.name}/{one.name}": one.read_bytes() for one in entry.iterdir()}
    return found
