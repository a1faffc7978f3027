"""Commands of the ``simulate`` family."""
