"""Programs that were written for other systems, unmodified and blocking, as kernels of asyncsim."""
