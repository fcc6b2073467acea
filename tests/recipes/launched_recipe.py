"""What a launcher starts twice: `launched_recipe.py RECIPE [OPTION ...]`.

With PRETEND_GPUS in the environment Accelerate takes the CPUs for GPUs, and so shards over them if told to.
"""

import importlib
import os
import sys

import torch
from accelerate import Accelerator, DistributedType, PartialState
from accelerate.state import AcceleratorState

if __name__ == "__main__":
    torch.set_num_threads(1)
    if os.environ.get("PRETEND_GPUS"):
        fsdp = os.environ.pop("ACCELERATE_USE_FSDP")
        Accelerator()
        AcceleratorState._reset_state()
        PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU
        os.environ["ACCELERATE_USE_FSDP"] = fsdp
    importlib.import_module(f"recipes.{sys.argv[1]}").main(sys.argv[2:])
    torch.distributed.destroy_process_group()
