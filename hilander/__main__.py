"""``python -m hilander`` is the command line."""

from hilander.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
