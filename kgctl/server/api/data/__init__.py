"""Records: writing, reading, and where they stand."""
