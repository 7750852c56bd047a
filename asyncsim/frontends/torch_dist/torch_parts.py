"""The parts of torch that a front end derives from; where torch is not installed, plain objects that nothing uses."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

torch: Any = import_module("torch") if find_spec("torch") is not None else None
c10d: Any = None if torch is None else import_module("torch.distributed.distributed_c10d")
WorkBase: Any = object if torch is None else c10d.Work
GroupBase: Any = object if torch is None else c10d.ProcessGroup
StoreBase: Any = object if torch is None else c10d.Store
DispatchBase: Any = object if torch is None else import_module("torch.utils._python_dispatch").TorchDispatchMode
FunctionBase: Any = object if torch is None else import_module("torch.overrides").TorchFunctionMode
DDP: Any = None if torch is None else torch.nn.parallel.DistributedDataParallel
