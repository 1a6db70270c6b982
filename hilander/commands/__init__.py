"""One module for each command: ``add_parser(subparsers)`` and ``run(args) -> exit code``.

A module imports the library inside `run`, so that ``hilander --help`` stays quick.
"""
