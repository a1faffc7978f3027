"""Kafka clients of confluent-kafka (librdkafka): nothing else in kgctl imports it.

Importing this package is cheap; its modules import confluent-kafka, which costs some 60 ms.
"""
