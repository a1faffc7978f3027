"""Kafka's log format at speed: bytes of a segment file or of a Fetch answer in, columns out.

``batches`` finds and checks the batches, ``codecs`` unpacks them, ``records`` reads the records of all batches in lock-step with
numpy, ``parse`` puts the columns together, ``messages`` reads the formats 0 and 1 of before Kafka 0.11. What cannot be read is
an item of ``damage`` and never takes a good batch with it.

Kafka: clients/src/main/java/org/apache/kafka/common/record.
"""
