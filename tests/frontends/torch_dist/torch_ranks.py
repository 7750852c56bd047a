"""Programs of torch.distributed for tests: run on ranks that have a default group."""

from asyncsim.frontends import torch_dist as dist
from asyncsim.frontends.torch_dist import launch


def started(program):
    """Return a program that has a default group."""

    def run_it():
        dist.init_process_group("gloo")
        return program(dist.get_rank())

    return run_it


def ranks(program, count=2):
    """Return what `program(rank)` returns on each rank; the first exception otherwise."""
    launched = launch(started(program), ranks=count)
    for error in launched.errors:
        if error is not None:
            raise error
    assert launched.session.idle or launched.check().verdict == "PROVED"
    return launched.results
