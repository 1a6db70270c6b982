"""Small runs, an explorer of them, clients of its server, and a browser."""

import shutil

import pytest

from tests.explorer.serving import PATIENCE, Client, Site, add_waits
from tests.explorer.small_runs import HOSTILE, write_run

pytest.importorskip("fastapi", reason="the explorer's extra is not installed: hilander[explore]")


@pytest.fixture
def run_folder(tmp_path, whole_run):
    """A copy of a run that the test may change."""
    return shutil.copytree(whole_run, tmp_path / "run")


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory):
    """A run written once, not to be changed."""
    return write_run(tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture
def explorer(run_folder):
    from hilander.explorer.session.opening import open_explorer

    opened = open_explorer(run_folder)
    yield opened
    opened.store.close()


@pytest.fixture
def make_run(tmp_path):
    """Write runs under names that the test chooses."""
    return lambda name, seed=0, **options: write_run(tmp_path / name, seed, **options)


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
        launched = playwright.chromium.launch(
            executable_path=path,
            args=[
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
            ],
        )
        yield launched
        launched.close()


@pytest.fixture
def serve_run():
    """Serve runs until the test ends."""
    sites = []

    def serve(folder, port=0):
        sites.append(Site(folder, port))
        return sites[-1]

    yield serve
    for site in sites:
        if site.thread.is_alive():
            site.close()


@pytest.fixture
def site(run_folder, serve_run):
    return serve_run(run_folder)


@pytest.fixture
def open_page(browser):
    """Open pages of sites; at the end, none has met an error or sent a request elsewhere."""
    opened = []

    def open_one(site, **device):
        """Open a page; `device` has options of the browser's context, such as `PHONE`."""
        options = {"viewport": {"width": 1280, "height": 860}, "accept_downloads": True, **device}
        context = browser.new_context(**options)
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        problems, foreign = [], []
        page.on("pageerror", lambda error: problems.append(str(error)))

        def note(message):
            # The stream of events breaks when a test stops the server.
            if message.type == "error" and not message.location["url"].endswith("api/events"):
                problems.append(message.text)

        page.on("console", note)
        own = (site.address, "data:", "blob:")
        page.on("request", lambda one: None if one.url.startswith(own) else foreign.append(one.url))
        add_waits(page, site.address)
        opened.append((context, problems, foreign))
        return page

    yield open_one
    for context, _, _ in opened:
        context.close()
    for _, problems, foreign in opened:
        assert problems == []
        assert foreign == []


@pytest.fixture
def page(site, open_page):
    return open_page(site)
