"""The steps of the experiments on evolution-inspired losses."""
