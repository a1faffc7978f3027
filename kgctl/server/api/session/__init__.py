"""The connection itself: versions, and who the client is."""
