"""How blocks of GPUs synchronise on words: signal pads, barriers on atomics, locks, queues; right and broken."""
