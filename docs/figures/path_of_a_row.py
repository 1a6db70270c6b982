"""Draw the path of a row: the modules that a row passes through in ``train`` and ``cluster``.

Run it from the repository: ``python docs/figures/path_of_a_row.py``. It runs both commands on a
small set, records which module calls which, and writes docs/images/path-train.svg and
docs/images/path-cluster.svg. It also lists in docs/reference/house.md which running modules are
called back. With ``--check`` it writes nothing and reports the files that differ; with
``--entrances`` it prints the modules that several others call.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import runpy
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock
from xml.sax.saxutils import escape

import numpy as np
from threadpoolctl import threadpool_limits

import hilander
from hilander.cli.main import make_parser
from hilander.synthetic.identities import make_identities
from hilander.synthetic.training_episodes import make_episodes

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
PAGE = ROOT / "docs" / "reference" / "house.md"
BEGIN, END = "<!-- path: begin -->", "<!-- path: end -->"
PACKAGE = str(Path(hilander.__file__).parent) + os.sep

# A set that passes through every stage of training in seconds.
N_IDENTITIES, SIZE, DIM = 24, 8, 8
QUIET = ("--quiet", "--device", "cpu")
TRAIN_OPTIONS = ("--epochs", "1", "--hidden", "4", *QUIET)
MOST_EPISODES = 2  # of the synthetic sets that training makes: each takes the same path
# Layers of values and services. Every layer above uses them, so nothing is said of who calls them.
SHARED_LAYERS = ("graph", "metrics", "embeddings", "engines", "io", "arrays", "errors")
# Sizes in pixels, and colours.
COLUMN, ROW, LEFT, TOP, LABEL = 50, 19, 16, 110, 190
STRIPE, LINE, DOT, INK = "#f3f5f9", "#aab4c5", "#1f5fa8", "#1c2330"


@dataclass
class Trace:
    """Which module called which, in one command.

    Attributes
    ----------
    first : dict of str to str
        Modules in the order of their first call, with the module that made it.
    callers : dict of str to set of str
        All modules that call a module.
    callbacks : dict of (str, str) to set of str
        Functions of a running module that another module calls, by (module, caller).
    """

    first: dict[str, str] = field(default_factory=dict)
    callers: dict[str, set[str]] = field(default_factory=dict)
    callbacks: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def note(self, module: str, function: str, running: list[str]) -> None:
        """Record a call of a module's function; `running` are the modules on the stack."""
        caller = running[-1] if running else ""
        if caller == module:
            return
        self.first.setdefault(module, caller)
        self.callers.setdefault(module, set()).add(caller)
        if module in running:
            self.callbacks.setdefault((module, caller), set()).add(function)


def trace_calls(run: Callable[[], Any]) -> Trace:
    """Run a function and record the calls between the modules of the package."""
    trace, running, names = Trace(), [], {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if (module := names.get(code.co_filename)) is None:
            module = names[code.co_filename] = name_module(code.co_filename)
        if module and event == "call":
            trace.note(module, code.co_name, running)
            running.append(module)
        elif module and running:
            running.pop()

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return trace


def name_module(path: str) -> str:
    """The module's name below the package; empty for a file of another package."""
    if not path.startswith(PACKAGE):
        return ""
    return path.removeprefix(PACKAGE).removesuffix(".py").replace(os.sep, ".")


def trace_commands() -> dict[str, Trace]:
    """The traces of ``hilander train`` and of ``hilander cluster`` with the model it wrote."""
    for module in pkgutil.walk_packages(hilander.__path__, "hilander."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)  # so that imports are no part of a trace
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(threadpool_limits(1))  # the calls have the same order every time
        for module in [one for name, one in sys.modules.items() if name.startswith("hilander.")]:
            if getattr(module, "make_episodes", None) is make_episodes:
                stack.enter_context(mock.patch.object(module, "make_episodes", make_few_episodes))
        known, new, model, run = (str(Path(folder, name)) for name in ("t.npz", "n.npy", "m", "r"))
        features, labels = make_identities(N_IDENTITIES, SIZE, DIM, seed=0)
        np.savez(known, features=features, labels=labels)
        np.save(new, make_identities(N_IDENTITIES, SIZE, DIM, seed=1)[0])
        commands = {
            "train": ("train", known, "-o", model, *TRAIN_OPTIONS),
            "cluster": ("cluster", new, "-m", model, "-o", run, *QUIET),
        }
        return {name: trace_command(arguments) for name, arguments in commands.items()}


def make_few_episodes(*arguments: Any) -> list[Any]:
    """The first of the synthetic sets that training makes."""
    return make_episodes(*arguments)[:MOST_EPISODES]


def trace_command(arguments: tuple[str, ...]) -> Trace:
    """The trace of one command, from the parsed arguments on."""
    args = make_parser().parse_args(arguments)
    return trace_calls(lambda: args.run(args))


def layer_of(module: str) -> str:
    """The layer of a module: its first name."""
    return module.split(".")[0]


def draw_path(trace: Trace, title: str, order: list[str]) -> str:
    """An SVG: a column for each layer, a row for each module, a line from who called it first."""
    layers = [one for one in order if one in {layer_of(module) for module in trace.first}]
    modules = list(trace.first)
    x = {layer: LEFT + COLUMN * number for number, layer in enumerate(layers)}
    place = {
        module: (x[layer_of(module)] + COLUMN // 2, TOP + ROW * number)
        for number, module in enumerate(modules)
    }
    width, height = LEFT + COLUMN * len(layers) + LABEL, TOP + ROW * len(modules) + 6
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for left in list(x.values())[::2]:
        parts.append(f'<rect x="{left}" y="0" width="{COLUMN}" height="{height}" fill="{STRIPE}"/>')
    for layer, left in x.items():
        turn = f"rotate(-50 {left + COLUMN // 2} {TOP - 18})"
        parts.append(
            f'<text x="{left + COLUMN // 2}" y="{TOP - 18}" font-size="12" font-weight="bold" '
            f'fill="{INK}" transform="{turn}">{layer}</text>'
        )
    for module, caller in trace.first.items():
        if caller:
            (x0, y0), (x1, y1) = place[caller], place[module]
            parts.append(f'<path d="M{x0} {y0}V{y1}H{x1}" fill="none" stroke="{LINE}"/>')
    for module, (x1, y1) in place.items():
        layer, _, rest = module.partition(".")
        parts.append(f'<circle cx="{x1}" cy="{y1}" r="4.5" fill="{DOT}"/>')
        parts.append(
            f'<text x="{x1 + 9}" y="{y1 + 4}" font-size="12" fill="{INK}" stroke="#ffffff" '
            f'stroke-width="3" paint-order="stroke">{rest or layer}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def list_callbacks(traces: dict[str, Trace]) -> str:
    """A table in Markdown: the running modules that another one calls."""
    rows = [
        f"| `{name}` | `{module}` | `{caller}` | {quote(called)} |"
        for name, trace in traces.items()
        for (module, caller), called in trace.callbacks.items()
        if layer_of(caller) not in SHARED_LAYERS and layer_of(module) not in SHARED_LAYERS
    ]
    header = "| command | running module | called back by | functions |"
    return "\n".join([header, "|---|---|---|---|", *rows])


def list_entrances(trace: Trace) -> list[str]:
    """The modules above the shared layers that several modules call, with those modules."""
    found = []
    for module, callers in trace.callers.items():
        outer = {one for one in callers if one and layer_of(one) not in SHARED_LAYERS}
        if len(outer) > 1 and layer_of(module) not in SHARED_LAYERS:
            found.append(f"{module}: from {', '.join(sorted(outer))}")
    return found


def quote(names: set[str]) -> str:
    """Names as code, in order."""
    return ", ".join(f"`{name}`" for name in sorted(names))


def make_files(traces: dict[str, Trace]) -> dict[Path, str]:
    """What each generated file should hold."""
    layers = runpy.run_path(str(Path(__file__).with_name("layers.py")))["read_layers"]()
    files = {
        IMAGES / f"path-{name}.svg": draw_path(trace, f"The modules of hilander {name}", layers)
        for name, trace in traces.items()
    }
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return {**files, PAGE: f"{before}{BEGIN}\n{list_callbacks(traces)}\n{END}{after}"}


def main() -> int:
    """Write the files, or report those that differ."""
    traces, differing = trace_commands(), 0
    if "--entrances" in sys.argv:
        for name, trace in traces.items():
            print(*[f"{name}: {line}" for line in list_entrances(trace)], sep="\n")
        return 0
    for path, text in make_files(traces).items():
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            print(f"{path.name} differs from the code; run python docs/figures/path_of_a_row.py")
            differing += 1
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
