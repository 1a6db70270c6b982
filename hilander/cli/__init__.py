"""The command line: parse, call, print.

Each command is a module with `add_parser(subparsers)` and `run(args) -> int`.
"""
