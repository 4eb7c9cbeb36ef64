# SPDX-License-Identifier: Apache-2.0
"""smoothed.py - has tensors smoothed by a worker in C (examples/mixed/smooth.c), and answers that worker's calls.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 smooth &
    RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python3 smoothed.py
"""
import math
from array import array

import tenrec_rpc as tenrec


@tenrec.register
def norm(x: tenrec.Tensor) -> float:
    """A function for C to call."""
    return math.hypot(*x.tolist())


def main() -> None:
    tenrec.init_rpc("trainer")
    noisy = array("f", [0, 3, 0, 3, 0, 3])
    print("smoothed:", tenrec.call("smoother", "smooth", noisy).tolist())
    try:
        tenrec.call("smoother", "smooth", "no tensor")
    except tenrec.InvalidError as e:  # what the C function returned
        print("smoothed:", e)
    tenrec.shutdown()


main()
