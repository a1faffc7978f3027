"""Where a coordinator's data lives: the record log that it is rebuilt from, the commit log kept for audit, and topics."""
