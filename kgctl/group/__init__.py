"""A live member of a group: the sans-IO member of `kgctl.member`, driven by threads over `kgctl.wire`."""
