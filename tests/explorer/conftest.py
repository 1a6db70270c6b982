"""Small runs to look at, an explorer of them, clients of its server, and a browser."""

import asyncio
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hilander.graph.scores import EdgeScores, edge_density
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.run_extras import RunExtras, write_extras
from hilander.hierarchy.storage import write_hierarchy
from hilander.io.writing import folder_writer, write_json

pytest.importorskip("fastapi", reason="the explorer's extra is not installed: hilander[explore]")
PATIENCE = 30  # seconds; only a test that fails waits so long
SETTLED = (
    "(main => !main.dataset.busy && main.dataset.shown === location.hash)"
    "(document.getElementById('main'))"
)
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


def make_points(seed, n_identities=14, per_identity=18, dim=12):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_identities, dim))
    labels = rng.permutation(np.repeat(np.arange(n_identities), per_identity))
    points = centres[labels] + rng.normal(scale=0.55, size=(len(labels), dim))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points.astype(np.float32), labels


def cluster_noisily(points, labels, seed=0, p_tau=0.6, max_levels=4):
    """The level loop with a scorer that is right most of the time."""
    rng = np.random.default_rng(seed)

    def score(graph, nodes):
        own = labels[nodes.point]
        sign = np.where(own[graph.neighbours] == own[:, None], 1.0, -1.0)
        logit = 1.6 * sign + rng.normal(0, 1.2, graph.affinity.shape)
        linkage = (1 / (1 + np.exp(-logit))).astype(np.float32)
        return EdgeScores(linkage, edge_density(graph.affinity, linkage))

    rules = Rules(k=6, p_tau=p_tau, max_levels=max_levels)
    steps = list(walk_levels(points, score, rules))
    return Hierarchy.of_steps(steps), steps[0]


def write_run(folder, seed=0, *, ids=None, bare=False, **rules):
    points, labels = make_points(seed)
    hierarchy, first = cluster_noisily(points, labels, seed, **rules)
    names = np.array([f"item-{row:04d}" for row in range(len(points))]) if ids is None else ids
    rng = np.random.default_rng(seed)
    with folder_writer(folder, "run") as inside:
        write_hierarchy(hierarchy, inside, names)
        if bare:
            return folder
        np.savez(
            inside / "graph.npz",
            neighbours=first.graph.neighbours,
            affinity=first.graph.affinity,
            linkage=first.scores.linkage,
        )
        patterns = rng.integers(0, 255, (labels.max() + 1, 10, 10)).astype(np.uint8)
        names_of = np.array([HOSTILE if label == 0 else f"kind {label}" for label in labels])
        extras = RunExtras(points, patterns[labels], {"label": names_of})
        write_extras(inside, hierarchy, extras)
        write_json(
            inside / "run.json",
            {
                "settings": {"k": 6, "p_tau": 0.6},
                "stages": [{"stage": "read", "seconds": 0.5}, {"stage": "level_0", "seconds": 2}],
                "versions": {"hilander": "0.1.0"},
            },
        )
    return folder


@pytest.fixture
def run_folder(tmp_path):
    return write_run(tmp_path / "run")


@pytest.fixture
def explorer(run_folder):
    from hilander.explorer.opening import open_explorer

    made = open_explorer(run_folder)
    yield made
    made.store.close()


@pytest.fixture
def make_run(tmp_path):
    """Write runs under names of the test's choice."""
    return lambda name, seed=0, **options: write_run(tmp_path / name, seed, **options)


class Client:
    """Asks an application without a network between; paths go out as they are written."""

    def __init__(self, app, base_url="http://127.0.0.1:8765", *, raise_app_exceptions=True):
        import httpx

        self.home = httpx.URL(base_url)
        self.transport = httpx.ASGITransport(app, raise_app_exceptions=raise_app_exceptions)
        self.cookies = httpx.Cookies()

    def request(self, method, path, **options):
        import httpx

        async def ask():
            async with httpx.AsyncClient(transport=self.transport, cookies=self.cookies) as client:
                address = self.home.copy_with(raw_path=path.encode())
                answer = await client.request(method, address, **options)
                self.cookies = client.cookies
                return answer

        # In a thread of its own: a browser test before may have left a loop running in this one.
        with ThreadPoolExecutor(1) as aside:
            return aside.submit(asyncio.run, ask()).result()

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, **options):
        return self.request("POST", path, **options)


@pytest.fixture
def client_of():
    return Client


@pytest.fixture
def hostile_text():
    return HOSTILE


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium of this machine; without one the tests skip."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if path is None:
        pytest.skip("no chromium on this machine; install one to run the browser tests")
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=path,
            args=[
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
            ],
        )
        yield made
        made.close()


class Site:
    """An explorer served by a thread."""

    def __init__(self, folder):
        import uvicorn

        from hilander.explorer.opening import bind, open_explorer
        from hilander.explorer.safety import Guard
        from hilander.explorer.server import create_app

        self.explorer = open_explorer(folder, compare=[folder])
        self.explorer.work_out()
        listening = bind("127.0.0.1", 0, exact=False)
        listening.listen(64)
        self.address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        config = uvicorn.Config(create_app(self.explorer, Guard()), log_level="error", ws="none")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]})
        self.thread.start()
        while not self.server.started:
            time.sleep(0.02)

    def close(self):
        self.server.should_exit = True
        self.thread.join()
        self.explorer.store.close()


@pytest.fixture
def serve_run():
    """Serve runs while the test runs."""
    made = []

    def serve(folder):
        made.append(Site(folder))
        return made[-1]

    yield serve
    for site in made:
        site.close()


@pytest.fixture
def site(run_folder, serve_run):
    return serve_run(run_folder)


def wait_until(page, check):
    end = time.monotonic() + PATIENCE
    while not check():
        if time.monotonic() > end:
            pytest.fail("the page did not do it")
        page.wait_for_timeout(20)


def add_waits(page, address):
    """Give a page of the explorer the waits that tests need.

    What the server has done the page shows a little later, and what is asked of a page that still
    draws itself may be asked of what is about to go. So every wait is also for the page to settle:
    its address drawn and nothing under way.
    """

    def until(expression):
        # The page's policy allows no evaluation inside of it, so it is asked from outside.
        wait_until(page, lambda: page.evaluate(f"{SETTLED} && Boolean({expression})"))

    def settle():
        until("true")

    def after(check):
        """Until the server has done what the page sent, and the page shows it."""
        wait_until(page, check)
        settle()

    def go(path):
        page.goto(f"{address}#/{path}")
        settle()

    page.until, page.settle, page.after, page.go = until, settle, after, go


@pytest.fixture
def open_page(browser):
    """Open pages of sites; at the end they may have met no error and asked nothing elsewhere."""
    made = []

    def open_one(site):
        context = browser.new_context(
            viewport={"width": 1280, "height": 860}, accept_downloads=True
        )
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        problems, foreign = [], []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda one: problems.append(one.text) if one.type == "error" else None)
        own = (site.address, "data:", "blob:")
        page.on("request", lambda one: None if one.url.startswith(own) else foreign.append(one.url))
        add_waits(page, site.address)
        made.append((context, problems, foreign))
        return page

    yield open_one
    for context, _, _ in made:
        context.close()
    for _, problems, foreign in made:
        assert problems == []
        assert foreign == []


@pytest.fixture
def page(site, open_page):
    return open_page(site)


@pytest.fixture(scope="session")
def noisy_clusters():
    return cluster_noisily
