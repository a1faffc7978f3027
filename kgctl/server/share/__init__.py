"""Share groups (KIP-932): sessions of members with a broker, who has acquired which records, and fetches that wait for some."""
