"""The consumer's side of the group protocol: members as pure state machines, for the classic and the consumer protocol."""
