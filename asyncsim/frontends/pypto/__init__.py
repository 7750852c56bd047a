"""PyPTO's distributed dialect: programs of ``pl`` and ``pld``, run as they are on the simulated machine."""
