"""The coordinator in virtual time: requests arrive, answers leave, deadlines come; and what its log says of the group."""
