"""Random actions while the server is killed several times: no acknowledged action is lost."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import httpx
import numpy as np
import pytest

from hilander.explorer.session.opening import open_explorer

# Enough for every kind of action before, between and after the kills; a start takes two seconds.
ACTIONS, KILLS = 120, 2


class Server:
    """An explorer in a separate process."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hilander", "explore", str(folder), "--port", "0",
             "--no-browser"],
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        line = self.process.stdout.readline()
        self.address = re.search(r"http://\S+", line).group()
        self.client = httpx.Client(base_url=self.address, timeout=20, trust_env=False)
        for _ in range(200):
            try:
                page = self.client.get("/").text
                break
            except httpx.TransportError:
                time.sleep(0.05)
        token = re.search(r'name="hilander-token" content="([^"]+)"', page).group(1)
        self.client.headers["x-hilander-token"] = token

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.client.close()


class Model:
    """A second implementation of the review, as lists and sets."""

    def __init__(self, labels):
        self.start = labels.tolist()
        self.done, self.undone = [], []

    def record(self, kind, body):
        if kind == "undo":
            self.undone.append(self.done.pop())
        elif kind == "redo":
            self.done.append(self.undone.pop())
        else:
            self.done.append((kind, body))
            self.undone.clear()

    def replay(self):
        labels, names, junk = list(self.start), {}, set()
        following = max(labels) + 1
        for kind, body in self.done:
            if kind == "merge":
                groups = body["groups"]
                sizes = {g: labels.count(g) for g in groups}
                target = max(groups, key=lambda g: (sizes[g], -g))
                kept = [names[g] for g in (target, *groups) if g in names]
                labels = [target if g in groups else g for g in labels]
                for g in set(groups) - {target}:
                    names.pop(g, None)
                    junk.discard(g)
                if kept:
                    names[target] = kept[0]
            elif kind == "move":
                to = body.get("to")
                if to is None:
                    to, following = following, following + 1
                left = {labels[row] for row in body["rows"]} - {to}
                for row in body["rows"]:
                    labels[row] = to
                for g in left:
                    if g not in labels:
                        names.pop(g, None)
                        junk.discard(g)
            elif kind == "name":
                names[body["group"]] = body["name"]
            elif kind == "junk":
                (junk.add if body["junk"] else junk.discard)(body["group"])
        return labels, names, junk


def choose(rng, model):
    labels, _, _ = model.replay()
    groups = sorted(set(labels))
    pick = lambda count: rng.choice(groups, count, replace=False).tolist()  # noqa: E731
    kinds = ["merge", "move", "move", "name", "junk", "undo", "redo"]
    kind = str(rng.choice(kinds))
    if (kind == "undo" and not model.done) or (kind == "redo" and not model.undone):
        kind = "name"
    if kind == "merge" and len(groups) < 6:
        kind = "move"
    body = {
        "merge": lambda: {"groups": pick(2)},
        "move": lambda: {
            "rows": rng.choice(len(labels), 3, replace=False).tolist(),
            **({"to": pick(1)[0]} if rng.random() < 0.5 else {}),
        },
        "name": lambda: {"group": pick(1)[0], "name": f"name {rng.integers(1000)}"},
        "junk": lambda: {"group": pick(1)[0], "junk": bool(rng.random() < 0.7)},
        "undo": dict,
        "redo": dict,
    }[kind]()
    return kind, body


@pytest.mark.slow
def test_no_acknowledged_action_is_lost_when_the_server_is_killed(make_run):
    folder = make_run("run")
    rng = np.random.default_rng(11)
    model = Model(open_explorer(folder).base.labels)
    kills = set(rng.choice(np.arange(20, ACTIONS - 5), KILLS, replace=False).tolist())
    server = Server(folder)
    try:
        for number in range(ACTIONS):
            kind, body = choose(rng, model)
            key = f"action-{number:05d}"
            if number in kills:
                # Killed before or after the acknowledgement: a repeated key is written once.
                delay = float(rng.random() * 0.004)
                sent = {"json": {**body, "client_key": key}, "timeout": max(delay, 0.0005)}
                with contextlib.suppress(httpx.TransportError):
                    server.client.post(f"/api/review/{kind}", **sent)
                server.kill()
                server = Server(folder)
            answer = server.client.post(f"/api/review/{kind}", json={**body, "client_key": key})
            if answer.status_code == 200:
                model.record(kind, body)
            else:
                assert answer.json()["error"]["code"] == "bad_request", answer.text
    finally:
        server.kill()
    labels, names, junk = model.replay()
    state = open_explorer(folder).review.state
    assert state.labels.tolist() == labels
    assert state.names == names
    assert state.junk == junk
    assert len(model.done) > ACTIONS / 5
