"""Make it happen: memory, effects, the gate, ranks, kernels, and the trio engine."""
