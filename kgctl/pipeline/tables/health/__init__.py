"""Groups in windows of time: what ``group_health`` is made of."""
