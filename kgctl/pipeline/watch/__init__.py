"""Watching groups: rules over the built tables, alerts that fire and are resolved, and where they are told."""
