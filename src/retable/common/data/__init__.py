"""Real data sets: where they come from, how they are checked, what their arrays are."""
