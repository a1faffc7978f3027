"""The form of a scenario file: what may stand where, its JSON Schema, and how it becomes a `Scenario`."""
