"""A scenario file as text: YAML with the place of everything in it, patches, and paths into it."""
