# SPDX-License-Identifier: Apache-2.0
"""weights.py - versions of weights from a trainer to generators: tenrec run -n 4 -- python3 weights.py [VERSIONS]

Worker 0 trains, and publishes its weights after each step. The others pull the newest version, from the trainer or
from each other; a slow one skips versions. Needs numpy.
"""
import sys

import numpy as np
import numpy.typing as npt

import tenrec_rpc as tenrec

SHAPES = {"embedding": (256, 64), "head": (64, 16)}
LIMIT_S = 60


def model(value: float) -> dict[str, npt.NDArray[np.float32]]:
    return {name: np.full(shape, value, np.float32) for name, shape in SHAPES.items()}


def train(weights: tenrec.Weights, versions: int, generators: int) -> None:
    mine = model(0.0)
    for version in range(1, versions + 1):
        for array in mine.values():
            array += 1.0  # a step of use takes longer
        weights.publish(version, mine)  # a copy: the next step may change them at once
    for holder in weights.wait(versions, reports=generators, timeout=LIMIT_S)["holders"]:
        print(f"weights: {holder['worker']} {holder['state']} version {holder['version']} {holder['error']}".rstrip())


def generate(weights: tenrec.Weights, versions: int) -> None:
    mine = model(0.0)
    have = 0
    while have < versions:
        have = weights.pull(mine, after=have, timeout=LIMIT_S)
        if any((array != have).any() for array in mine.values()):
            weights.report(have, "these are not the weights of that version")
            sys.exit("weights: a version with other elements")
    weights.report(have)


def main() -> None:
    versions = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    me = tenrec.init_rpc()
    with me.weights("policy", keeper="worker0") as weights:
        if me.id == 0:
            train(weights, versions, len(me.members()) - 1)
        else:
            generate(weights, versions)
        me.barrier()  # the others may still read from this worker, or ask the keeper
    tenrec.shutdown()


main()
