"""A kernel, found by its name; its runs; and what they depend on besides their inputs."""
