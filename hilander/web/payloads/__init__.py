"""What each view shows, as plain dictionaries: the JSON twins of the pages."""
