"""Read a run folder: hierarchy, items, images, graph, and the layout of the map."""
