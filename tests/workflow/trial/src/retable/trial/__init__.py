"""A small paper that the workflow's tests put beside the real ones: digits, one linear layer."""
