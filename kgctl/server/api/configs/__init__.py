"""Settings of topics, brokers, groups, loggers and clients' metrics: one API a file."""
