"""What the pytest plugin does with kernels. Its hooks stand in `pytest_asyncsim`, which loads this when it must."""
