"""Training networks: one loop, its checkpoints, the device."""
