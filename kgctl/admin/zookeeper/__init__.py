"""Consumer groups that live in ZooKeeper: those of Kafka's consumers before 0.9, and of clients that kept to their tree.

`registry` has the whole surface of such a group as a Python API, `admin` puts it behind `kgctl.admin.client.GroupAdmin`,
`consumer` is a running consumer of that kind, `migration` copies offsets into a group on Kafka. Only `connection` imports kazoo.
"""
