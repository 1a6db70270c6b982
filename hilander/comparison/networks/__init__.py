"""Networks of the supervised rivals."""
