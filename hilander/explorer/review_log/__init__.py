"""The review on disk: an append-only log of actions, and the state that its replay gives."""
