"""Faces: detect, align, and describe each by 128 numbers."""
