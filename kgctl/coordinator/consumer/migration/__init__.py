"""Both protocols in one group: members of the classic protocol, and groups that change from one protocol to the other."""
