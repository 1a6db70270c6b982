"""Training of networks: the loop, its checkpoints, and the device."""
