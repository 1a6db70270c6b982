"""Write the argument tables of docs/reference/command-line.md from the parsers of the commands.

Run it from the repository: ``python docs/figures/options.py``. A table belongs to the section
``## hilander COMMAND`` that it is in.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from hilander.cli.main import make_parser

PAGE = Path(__file__).resolve().parents[1] / "reference" / "command-line.md"
HEADER = "| argument | meaning |\n|---|---|\n"


def find_commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    actions = make_parser()._actions
    return dict(next(one for one in actions if isinstance(one, argparse._SubParsersAction)).choices)


def write_table(parser: argparse.ArgumentParser) -> str:
    """The table of a command's arguments in Markdown, one row each."""
    formatter = parser._get_formatter()
    rows = []
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction) or action.help == argparse.SUPPRESS:
            continue
        value = (
            "" if action.nargs == 0 else " " + formatter._format_args(action, name_value(action))
        )
        names = [name + value for name in action.option_strings] or [str(action.metavar)]
        meaning = formatter._expand_help(action)
        if action.required and action.option_strings:
            meaning += "; required"
        rows.append(f"| {', '.join(f'`{name}`' for name in names)} | {escape(meaning)} |")
    return HEADER + "\n".join(rows) + "\n"


def name_value(action: argparse.Action) -> str:
    """How the help calls the value of an option without a metavar."""
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper()


def escape(text: str) -> str:
    """Text that Markdown shows as it is in a cell."""
    return re.sub(r"([|*<])", r"\\\1", text)


def fill_tables(text: str) -> str:
    """The page with the table of every section written anew."""
    commands = find_commands()
    parts = re.split(r"^(?=## )", text, flags=re.M)
    for number, part in enumerate(parts):
        heading = re.match(r"## hilander (\w+)", part)
        if heading and heading[1] in commands:
            before, _, rest = part.partition(HEADER)
            after = re.sub(r"\A(\|.*\n)+", "", rest)
            parts[number] = before + write_table(commands[heading[1]]) + after
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(fill_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
