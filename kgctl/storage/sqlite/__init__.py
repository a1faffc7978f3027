"""The SQLite implementation of `kgctl.storage.protocols`."""
