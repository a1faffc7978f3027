"""Recordings of Kafka Streams on Apache Kafka, which `simulate` is compared with."""
