"""The command line: arguments to a command, its `Report` to streams and an exit code."""
