"""Committed offsets: the store, and one module for each thing that can be asked of it."""
