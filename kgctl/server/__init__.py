"""``kgctl serve``: the coordinator behind Kafka's wire protocol, on asyncio."""
