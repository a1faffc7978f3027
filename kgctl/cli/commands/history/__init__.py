"""The commands of `kgctl history`, one module each."""
