"""kafka-consumer-groups.sh, as a command of kgctl: its options, its tables, its words."""
