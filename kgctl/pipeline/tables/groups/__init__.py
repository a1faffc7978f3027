"""The records of groups, played back in log order: who was a member when, what each was assigned, which rebalances there were."""
