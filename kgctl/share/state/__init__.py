"""The share coordinator: keeps what groups have read and acknowledged, as records of ``__share_group_state``."""
