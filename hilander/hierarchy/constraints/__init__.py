"""Knowledge given beforehand: points that belong together, points that do not, known labels."""
