"""Studies of a kernel that no verdict needs: audit, repair, lowering, cost, worked examples, traces compared."""
