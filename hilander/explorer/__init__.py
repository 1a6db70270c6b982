"""The explorer of a run: server, API, page and report."""
