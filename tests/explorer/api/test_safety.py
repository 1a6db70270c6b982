"""The server (app, routes, access checks) only answers its own page."""

import json
import os
import re
import shutil

import pytest

from hilander.errors import SettingError
from hilander.explorer.api.app import create_app
from hilander.explorer.api.safety import MOST_BODY_BYTES, Guard, make_guard
from tests.explorer.small_runs import forget_digest

TOKEN = "a-long-access-token"


@pytest.fixture
def guard():
    return Guard()


@pytest.fixture
def client(explorer, guard, client_of):
    return client_of(create_app(explorer, guard))


def act(client, guard, kind, body, **headers):
    sent = {"x-hilander-token": guard.page_token, **headers}
    return client.post(f"/api/review/{kind}", json=body, headers=sent)


def check_error(answer, status, code):
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    assert set(answer.json()["error"]) == {"code", "message"}
    assert answer.json()["error"]["code"] == code


def test_the_page_and_its_assets_come_from_this_server(client):
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    for name in re.findall(r'(?:href|src)="(static/[^"]+)"', page.text):
        answer = client.get(f"/{name}")
        assert answer.status_code == 200, name
    for text in (page.text, client.get("/api").text):
        assert not re.search(r'(href|src)="(https?:)?//', text)


@pytest.mark.parametrize("folder", ["js", "css", "."])
def test_no_asset_refers_to_another_site(folder):
    from importlib.resources import files

    for entry in (files("hilander.explorer") / "static" / folder).iterdir():
        if entry.is_file():
            text = entry.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
            assert "://" not in text, entry.name
            assert "innerHTML" not in text, entry.name


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "localhost.evil", "[::2]",
     "user@127.0.0.1", "127.0.0.1/x", "10.0.0.1", "[broken"],
)  # fmt: skip
def test_a_foreign_host_header_is_refused(client, host):
    check_error(client.get("/api/overview", headers={"host": host}), 421, "wrong_host")
    assert client.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:1", "LOCALHOST", "[::1]:80"])
def test_names_of_this_machine_are_allowed(client, host):
    assert client.get("/api/overview", headers={"host": host}).status_code == 200


def test_a_change_needs_the_token_of_the_page(client, guard, explorer):
    body = {"group": 0, "name": "x"}
    check_error(client.post("/api/review/name", json=body), 403, "no_token")
    check_error(act(client, Guard(), "name", body), 403, "no_token")
    assert explorer.review.log == []
    assert act(client, guard, "name", body).status_code == 200
    assert guard.page_token in client.get("/").text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_change_from_another_site_is_refused_even_with_the_token(client, guard, headers):
    check_error(act(client, guard, "name", {"group": 0, "name": "x"}, **headers), 403, "cross_site")


def test_get_requests_change_nothing(client):
    for kind in ("merge", "undo", "name"):
        assert client.get(f"/api/review/{kind}").status_code in (404, 405)


def test_other_methods_are_refused_without_a_token(client):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, "/api/overview").status_code == 403


def test_a_request_too_large_is_refused(client, guard):
    body = b"x" * (MOST_BODY_BYTES + 1)
    sent = {"x-hilander-token": guard.page_token, "content-type": "application/json"}
    check_error(client.post("/api/review/name", content=body, headers=sent), 413, "too_large")

    async def stream():
        for _ in range(40):
            yield b"x" * 40_000

    check_error(client.post("/api/review/name", content=stream(), headers=sent), 413, "too_large")
    false_length = sent | {"content-length": "-5"}
    check_error(
        client.post("/api/review/name", content=b"", headers=false_length), 413, "too_large"
    )


def test_every_answer_has_the_security_headers(client):
    for path in ("/", "/api/overview", "/static/base.css", "/nowhere", "/api/items/0/image"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/js/../../app.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/js",
        "/static/",
        "/static/index.html",
        "/static/js/app.js%00.css",
        "/api/items/..%2f..%2fetc%2fpasswd/image",
        "/api/items/-1/image",
        "/api/items/999999999/image",
        "/api/items/1e3/image",
    ],
)
def test_no_path_leads_to_another_file(client, path):
    answer = client.get(path)
    assert answer.status_code in (404, 422)
    assert "error" in answer.json()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/nothing", 404),
        ("/api/clusters?sort=beauty", 400),
        ("/api/clusters?limit=100000", 422),
        ("/api/clusters?offset=-1", 422),
        ("/api/clusters?level=99", 404),
        ("/api/clusters?search=" + "x" * 300, 422),
        ("/api/clusters/reviewed/99999", 404),
        ("/api/clusters/reviewed/-1", 404),
        ("/api/clusters/reviewed/abc", 422),
        ("/api/clusters/reviewed/0/parts?at=55", 400),
        ("/api/points/99999", 404),
        ("/api/tree?start=99999999", 400),
        ("/api/review/queue?kind=x", 400),
        ("/api/compare?key=run:../..", 400),
        ("/api/review/export/labels?format=exe", 422),
        ("/api/points/" + "9" * 400, 404),
        ("/api/points/-1", 404),
    ],
)
def test_every_error_has_the_same_form(client, path, status):
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert set(answer.json()["error"]) == {"code", "message"}
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    "body",
    ["[]", "{", '{"group": "0", "name": "x"}', '{"group": 0, "name": "x", "more": 1}', "null",
     '{"group": 1e999}', '{"rows": [1.5]}', '{"group": ' + "9" * 400 + "}"],
)  # fmt: skip
def test_an_invalid_body_is_an_error(client, guard, body):
    sent = {"x-hilander-token": guard.page_token, "content-type": "application/json"}
    answer = client.post("/api/review/name", content=body, headers=sent)
    assert answer.status_code in (400, 422)
    assert "error" in answer.json()


def test_an_unexpected_error_sends_no_traceback(explorer, guard, monkeypatch, client_of):
    monkeypatch.setattr(type(explorer), "reviewed", lambda self: 1 / 0)
    quiet = client_of(create_app(explorer, guard), raise_app_exceptions=False)
    answer = quiet.get("/api/overview")
    check_error(answer, 500, "internal")
    assert "line" not in answer.text


def test_names_are_sent_as_data_and_not_as_markup(client, guard, hostile_text):
    act(client, guard, "name", {"group": 0, "name": hostile_text})
    answer = client.get("/api/clusters/reviewed/0")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["name"] == hostile_text
    assert hostile_text not in client.get("/").text


def test_exports_come_in_three_formats(client, guard, explorer):
    act(client, guard, "merge", {"groups": [0, 1]})
    act(client, guard, "junk", {"group": 2, "junk": True})
    import io

    import pyarrow.parquet as parquet

    payload = client.get("/api/review/export/labels?format=json").json()
    table = parquet.read_table(
        io.BytesIO(client.get("/api/review/export/labels?format=parquet").content)
    )
    lines = client.get("/api/review/export/labels?format=csv").text.splitlines()
    assert table.to_pylist() == payload
    assert len(lines) == len(payload) + 1 == 253
    labels = explorer.review.state.labels
    assert [one["cluster"] for one in payload] == [
        -1 if label == 2 else label for label in labels.tolist()
    ]
    pairs = client.get("/api/review/export/pairs?format=json").json()
    assert [one["link"] for one in pairs] == ["must"]
    csv = client.get("/api/review/export/pairs?format=csv")
    assert csv.text.splitlines()[0] == "id_a,id_b,link"
    assert csv.headers["content-disposition"].startswith("attachment")


def test_the_api_describes_itself(client):
    payload = client.get("/api/openapi.json").json()
    for path, methods in payload["paths"].items():
        assert path.startswith("/api/")
        for route in methods.values():
            assert route["description"]
    assert "/api/review/{kind}" in payload["paths"]


def test_another_machine_needs_the_token(explorer, client_of):
    guard = make_guard("0.0.0.0", TOKEN)
    client = client_of(create_app(explorer, guard), "http://10.1.2.3:8765")
    check_error(client.get("/"), 401, "no_access")
    check_error(client.get("/api/overview?token=wrong"), 401, "no_access")
    check_error(client.get("/static/base.css"), 401, "no_access")
    assert client.get("/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    first = client.get(f"/?token={TOKEN}")
    assert first.status_code == 200
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.get("/api/overview").status_code == 200
    check_error(client.get("/", headers={"host": "evil.example"}), 421, "wrong_host")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "myhost", "127.0.0.1.evil"])
def test_a_host_that_other_machines_reach_needs_a_token(host):
    with pytest.raises(SettingError, match="--token"):
        make_guard(host)
    with pytest.raises(SettingError, match="can be guessed"):
        make_guard(host, "short")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.5"])
def test_loopback_needs_no_token(host):
    assert make_guard(host).access_token is None


def test_a_run_that_cannot_be_opened_is_an_error_on_every_page_and_in_json(hostile_text, client_of):
    client = client_of(create_app(None, Guard(), f"no run: {hostile_text}"))
    for path in ("/", "/clusters", "/x/y"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert "cannot be opened" in answer.text
        assert hostile_text not in answer.text
    check_error(client.get("/api/overview"), 503, "no_run")
    assert client.get("/static/base.css").status_code == 200


def test_only_images_inside_the_folder_are_served(make_run, tmp_path, client_of):
    import numpy as np
    from PIL import Image

    from hilander.explorer.session.opening import open_explorer
    from hilander.io.files import write_table

    folder = make_run("run")
    images = tmp_path / "images"
    images.mkdir()
    Image.new("RGB", (9, 9), "blue").save(images / "fine <b>.png")
    Image.new("RGB", (9, 9), "red").save(tmp_path / "secret.png")
    os.symlink(tmp_path / "secret.png", images / "link.png")
    paths = np.array(["fine <b>.png", "../secret.png", "link.png", str(tmp_path / "secret.png")])
    (folder / "thumbs.npy").unlink()
    forget_digest(folder, "items.parquet")
    forget_digest(folder, "thumbs.npy")
    write_table(folder / "items.parquet", {"path": np.resize(paths, 252)})
    (folder / "images.json").write_text(json.dumps({"folder": str(images)}))
    explorer = open_explorer(folder)
    client = client_of(create_app(explorer, Guard()))
    assert client.get("/api/items/0/image").headers["content-type"] == "image/jpeg"
    for row in (1, 2, 3):
        check_error(client.get(f"/api/items/{row}/image"), 404, "not_found")
    assert client.get("/api/items/0/full").headers["content-type"] == "image/jpeg"
    shutil.rmtree(images)
    check_error(client.get("/api/items/0/image"), 404, "not_found")


def test_an_image_is_kept_under_the_key_of_its_run_and_content_alone(client, explorer):
    key = explorer.run.image_key(3)
    for kind in ("image", "full"):
        kept = client.get(f"/api/items/3/{kind}?v={key}")
        assert kept.status_code == 200
        assert "immutable" in kept.headers["cache-control"]
        assert client.get(f"/api/items/3/{kind}").headers["cache-control"] == "no-store"
        other = client.get(f"/api/items/4/{kind}?v={key}")
        check_error(other, 404, "not_found")
        assert other.headers["cache-control"] == "no-store"


def test_the_targets_of_a_move_are_refused_for_rows_that_do_not_exist(client, guard, explorer):
    for body in ({"rows": []}, {"rows": [-1]}, {"rows": [1 << 70]}, {"rows": [252]}, {}):
        check_error(act(client, guard, "targets", body), 400, "bad_request")
    check_error(act(client, guard, "targets", {"group": 999}), 404, "not_found")
    found = act(client, guard, "targets", {"rows": [5], "limit": 3}).json()["items"]
    assert len(found) == 3
    assert int(explorer.base.labels[5]) not in [one["cluster"] for one in found]
