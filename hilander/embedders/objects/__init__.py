"""Objects and scenes: features of EfficientNet-Lite0."""
