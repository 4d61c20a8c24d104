"""The steps of the experiments on the implicit bias of Adam."""
