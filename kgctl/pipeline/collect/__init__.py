"""From a source into the warehouse."""
