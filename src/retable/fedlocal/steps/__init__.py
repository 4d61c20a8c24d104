"""The steps of the experiments on local steps."""
