"""What may come next in a generated sequence: one function for each kind of step."""
