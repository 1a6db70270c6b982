"""Arrays of rows: types, blocks of rows, and rows of half precision or of a mapped file."""
