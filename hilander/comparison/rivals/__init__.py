"""Other clustering methods, all with the signature of `hilander.comparison.rival.Rival`."""
