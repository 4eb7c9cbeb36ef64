# SPDX-License-Identifier: Apache-2.0
"""parameter_server.py - parameters behind a remote reference, and trainers that push gradients.

    tenrec run -n 4 -- python3 parameter_server.py [UPDATES]

Worker 0 owns a table: the weights of a linear model, an object of Python that never leaves it. Each trainer gets a
reference to the table, pulls the weights and pushes gradients of samples of its own; trainers do not wait for each
other. Needs numpy.
"""
import sys
import threading

import numpy as np
import numpy.typing as npt

import tenrec_rpc as tenrec

WEIGHTS = 64
SAMPLES = 32  # of each update
RATE = 0.1
CLOSE_TO = 0.01  # the root mean square error of the weights at the end
TRUTH = np.sin(1.7 * np.arange(WEIGHTS) + 0.3)  # what the model has to find


class Table:
    """The weights. Each update replaces them, so that a pull sends a whole one."""

    def __init__(self, updates: int) -> None:
        self.weights: npt.NDArray[np.float64] = np.zeros(WEIGHTS)
        self.updates = 0
        self.wanted = updates
        self.lock = threading.Lock()

    def push(self, gradient: npt.NDArray[np.float64]) -> bool:
        with self.lock:
            self.weights = self.weights - RATE * gradient
            self.updates += 1
            return self.updates < self.wanted


table: Table


@tenrec.register("open")
def open_table() -> Table:
    return table


@tenrec.register
def pull(of: Table) -> npt.NDArray[np.float64]:
    return of.weights


@tenrec.register
def push(to: Table, gradient: tenrec.Tensor) -> bool:
    return to.push(np.asarray(gradient))


def train(me: int) -> None:
    random = np.random.default_rng(me)
    reference = tenrec.remote("worker0", "open")
    more = True
    while more:
        weights = np.asarray(reference.call("pull"))
        x = random.standard_normal((SAMPLES, WEIGHTS))
        more = reference.call("push", x.T @ (x @ (weights - TRUTH)) / SAMPLES)


def main() -> None:
    global table
    table = Table(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
    me = tenrec.init_rpc()
    if me.id > 0:
        train(me.id)
    tenrec.shutdown()  # worker 0 serves until the trainers are here
    if me.id == 0:
        error = np.sqrt(np.mean((table.weights - TRUTH) ** 2))
        print(f"parameter_server: error {error:.5f} after {table.updates} updates")
        if error > CLOSE_TO:
            sys.exit("parameter_server: the weights have not converged")


main()
