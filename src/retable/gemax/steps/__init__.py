"""The steps of the experiments on graph entropy maximisation."""
