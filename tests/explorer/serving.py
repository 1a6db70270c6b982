"""Servers and clients of the explorer for tests."""

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

# Seconds until a wait fails; a test that passes never waits that long.
PATIENCE = float(os.environ.get("HILANDER_PATIENCE", 30))
# A phone: narrow, with a finger in place of a mouse.
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
SETTLED = (
    "(main => !main.dataset.busy && main.dataset.shown === location.hash)"
    "(document.getElementById('main'))"
)


class Client:
    """Sends requests to an application without a network; paths are sent as they are written."""

    def __init__(self, app, base_url="http://127.0.0.1:8765", *, raise_app_exceptions=True):
        import httpx

        self.home = httpx.URL(base_url)
        self.transport = httpx.ASGITransport(app, raise_app_exceptions=raise_app_exceptions)
        self.cookies = httpx.Cookies()

    def request(self, method, path, **options):
        import httpx

        async def send():
            async with httpx.AsyncClient(transport=self.transport, cookies=self.cookies) as client:
                address = self.home.copy_with(raw_path=path.encode())
                answer = await client.request(method, address, **options)
                self.cookies = client.cookies
                return answer

        # In a separate thread: a browser test may have left an event loop running in this one.
        with ThreadPoolExecutor(1) as executor:
            return executor.submit(asyncio.run, send()).result()

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, **options):
        return self.request("POST", path, **options)


class Site:
    """An explorer that a thread serves."""

    def __init__(self, folder, port=0):
        import uvicorn

        from hilander.explorer.api.app import create_app
        from hilander.explorer.api.listening import bind
        from hilander.explorer.api.safety import Guard
        from hilander.explorer.session.opening import open_explorer

        self.explorer = open_explorer(folder, compare=[folder])
        self.explorer.precompute()
        listening = bind("127.0.0.1", port, exact=port != 0)
        listening.listen(64)
        self.port = listening.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}/"
        config = uvicorn.Config(create_app(self.explorer, Guard()), log_level="error", ws="none")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]})
        self.thread.start()
        while not self.server.started:
            time.sleep(0.02)

    def close(self):
        self.explorer.stopping.set()
        self.server.should_exit = True
        self.thread.join()
        self.explorer.store.close()


def wait_until(page, check):
    end = time.monotonic() + PATIENCE
    while not check():
        if time.monotonic() > end:
            pytest.fail(f"the page did not get there in {PATIENCE} seconds")
        page.wait_for_timeout(20)


def add_waits(page, address):
    """Give a page of the explorer the waits that tests need.

    The page shows a change a little after the server has made it, and a click on a page that is
    being drawn may hit an element that is about to be replaced. So every wait also waits until the
    page is settled: it shows its address and no request is open.
    """

    def until(expression):
        # The content policy forbids evaluation inside the page, so the test evaluates from outside.
        wait_until(page, lambda: page.evaluate(f"{SETTLED} && Boolean({expression})"))

    def settle():
        until("true")

    def after(check):
        """Wait until the server has made a change and the page shows it."""
        wait_until(page, check)
        settle()

    def go(path):
        page.goto(f"{address}#/{path}")
        settle()

    page.until, page.settle, page.after, page.go = until, settle, after, go


class Held:
    """Hold requests of a page back from the server until they are released."""

    def __init__(self, page, pattern):
        self.page, self.pattern = page, pattern
        self.holding, self.routes = True, []
        page.route(pattern, self.handle)

    def handle(self, route):
        if self.holding:
            self.routes.append(route)
        else:
            route.continue_()

    def wait(self):
        for _ in range(1500):
            if self.routes:
                return
            self.page.wait_for_timeout(20)
        pytest.fail(f"the page did not request {self.pattern}")

    def release(self):
        """Send the held requests, and hold no further ones."""
        self.holding = False
        for route in self.routes:
            route.continue_()
