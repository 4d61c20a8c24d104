"""The steps of the trial paper."""
