"""Other clustering methods behind one protocol."""
