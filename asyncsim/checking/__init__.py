"""Judge it, often: check, explore, witness, shrink, replay."""
