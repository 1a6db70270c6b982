"""Clusters of one partition: a level of the hierarchy, or the last level as reviewed."""
