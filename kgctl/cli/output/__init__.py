"""How a `Report` is shown: one module per format."""
