"""OpenSHMEM for Python: scripts of shmem4py as they are, on simulated PEs."""
