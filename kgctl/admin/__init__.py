"""Groups of a cluster: what can be asked and changed, whatever stands behind it."""
