"""Readers of a live cluster: what `reader.LiveReader` says, through kgctl's own connection or through confluent-kafka."""
