"""Topics, brokers and configs."""
