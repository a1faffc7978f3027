"""How a `Report` is shown."""
