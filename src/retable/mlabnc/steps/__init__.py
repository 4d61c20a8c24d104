"""The steps of the multi-label neural collapse pipeline, in the order in which they run."""
