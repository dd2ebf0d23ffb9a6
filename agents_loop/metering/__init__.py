"""What the calls of a run use: the ledger, the prices, and the budgets that bound it."""
