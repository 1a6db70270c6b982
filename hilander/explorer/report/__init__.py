"""The report of a run, as one HTML file or as Markdown."""
