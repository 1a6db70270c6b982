"""One opened run with its review."""
