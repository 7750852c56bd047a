"""``torch.distributed``, answered by asyncsim: the names of that module, on numpy arrays or CPU torch tensors.

Its functions are called by the ranks of a launch: ``asyncsim torchrun -n P SCRIPT.py`` runs an unmodified
script, `launch` a function. Each rank is a thread, and every collective a composite on the simulated
machine. Semantics and refusals follow gloo; where torch lets a mistake pass (SUM against MAX, an absent
rank), the ranks end with `CallMismatchError`.
"""

from asyncsim.frontends.torch_dist.collectives import (
    all_reduce,
    barrier,
    broadcast,
    reduce_scatter,
    reduce_scatter_tensor,
)
from asyncsim.frontends.torch_dist.exchanges import all_gather, all_gather_into_tensor, all_to_all_single
from asyncsim.frontends.torch_dist.groups import (
    GroupMember,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    new_group,
)
from asyncsim.frontends.torch_dist.launch import launch
from asyncsim.frontends.torch_dist.reduce_op import ReduceOp
from asyncsim.frontends.torch_dist.reduce_op import make_premul_sum as _make_nccl_premul_sum
from asyncsim.frontends.torch_dist.session import CallMismatchError, NotRunError
from asyncsim.frontends.torch_dist.team import ProcessGroup
from asyncsim.frontends.torch_dist.work import Work

reduce_scatter_single = _reduce_scatter_base = reduce_scatter_tensor
all_gather_single = _all_gather_base = all_gather_into_tensor

__all__ = [
    "CallMismatchError",
    "GroupMember",
    "NotRunError",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "_all_gather_base",
    "_make_nccl_premul_sum",
    "_reduce_scatter_base",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "destroy_process_group",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "launch",
    "new_group",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
]
