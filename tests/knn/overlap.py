"""The measure that tests of approximate search share."""


def share_found(found, exact):
    """Share of the exact neighbours, shape (n_rows, k), that are among those found, by index."""
    return float((exact[:, :, None] == found[:, None, :]).any(axis=2).mean())
