"""Operations that speak Kafka's protocol over `kgctl.wire`: one module each.

They are what confluent-kafka cannot do, or cannot do exactly: groups of every type, raw states, epochs, many groups in one
request, deletion of offsets, removal of members. Each is a function of a `kgctl.wire.cluster.Cluster` and a deadline.
"""
