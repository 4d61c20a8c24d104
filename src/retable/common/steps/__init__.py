"""The steps that belong to no paper: shared data sets, the ledger of claims, the costs."""
