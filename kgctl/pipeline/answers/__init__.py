"""Answers from the built tables: read with pyarrow alone, no JVM is started."""
