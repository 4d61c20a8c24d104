"""The steps of the DeepWalk paper: one module an experiment, then evaluation, table and figure."""
