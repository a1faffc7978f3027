"""The assignors that run in a consumer: the group's leader calls them in the classic protocol."""
