"""MPI windows for Python: scripts of mpi4py as they are, on simulated ranks."""
