"""Reviewing: actions, the queue of questions, and carrying a review over to a new run."""
