"""A client's connection to a Kafka cluster: TCP, TLS, SASL, requests and responses, and who in the cluster must be asked.

Blocking sockets and, where several brokers are asked at once, a thread for each: a short-lived command pays neither for an event
loop nor for its import. Every call has a `kgctl.wire.deadline.Deadline`; nothing here waits without one.
"""
