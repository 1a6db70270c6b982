"""Arrays of rows: their types, blocks of rows, and rows that are read from a file."""
