"""What a run is measured by: one module a family, one line of the registry a metric."""
