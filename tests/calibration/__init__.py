"""The same scenario twice: with Apache Kafka and its Java client in real time, and simulated."""
