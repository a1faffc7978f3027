"""What real clients committed when, written down beside them, to hold the history against."""
