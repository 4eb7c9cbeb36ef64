# SPDX-License-Identifier: Apache-2.0
"""sampling.py - samples neighbours in a graph whose nodes are divided among workers: tenrec run -n 3 -- python3 sampling.py [BATCHES]

Each worker has the edges and the feature rows of its nodes. For a batch of nodes it has the owners sample two hops of
neighbours, by one call to each, and reads the rows of all sampled nodes out of the owners' regions: their programs run
nothing for that. The result of two layers of GraphSAGE is compared with that of the whole graph. Needs numpy.
"""
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import tenrec_rpc as tenrec

NODES, EDGES, WIDTH = 3000, 40000, 16
BATCH = 64
FANOUTS = 5, 3  # neighbours of a node of the batch, and of each of them

Ids = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float32]


class Part:
    """The edges and rows of nodes number, number + n, number + 2n ... of the same graph at all workers."""

    def __init__(self, number: int = 0, n: int = 1) -> None:
        random = np.random.default_rng(7)
        edges = random.integers(NODES, size=(2, EDGES))
        rows = random.standard_normal((NODES, WIDTH)).astype(np.float32)
        edges = np.concatenate([edges, np.tile(np.arange(NODES), (2, 1))], axis=1)  # each node is a neighbour of itself
        edges = edges[:, edges[0] % n == number]
        edges = edges[:, np.argsort(edges[0], kind="stable")]
        self.n, self.number = n, number
        self.neighbours: Ids = edges[1]
        self.first: Ids = np.searchsorted(edges[0], np.arange(number, NODES + n, n))
        self.rows: Rows = np.ascontiguousarray(rows[number::n])

    def sample(self, ids: Ids, fanout: int, seed: int) -> Ids:
        """As many neighbours of each node. The choice depends on node and seed alone, so that it is the same anywhere."""
        if ((ids < 0) | (ids >= NODES) | (ids % self.n != self.number)).any():
            raise ValueError(f"not all of the nodes are those of worker {self.number}")
        chosen = np.empty((len(ids), fanout), np.int64)
        for row, node in zip(chosen, ids):
            own = self.neighbours[self.first[node // self.n]:self.first[node // self.n + 1]]
            row[:] = np.random.default_rng((seed, int(node))).choice(own, fanout)
        return chosen


class Graph:
    """The graph as one worker sees it."""

    def __init__(self, me: tenrec.Worker, part: Part, refs: dict[str, tenrec.RegionRef]) -> None:
        self.me, self.part, self.refs = me, part, refs
        self.read = 0  # rows of others

    def by_owner(self, ids: Ids) -> dict[int, Ids]:
        """The places in `ids` of the nodes of each worker."""
        places = {owner: np.flatnonzero(ids % self.part.n == owner) for owner in range(self.part.n)}
        return {owner: found for owner, found in places.items() if len(found)}

    def sample(self, ids: Ids, fanout: int, seed: int) -> Ids:
        chosen = np.empty((len(ids), fanout), np.int64)
        places = self.by_owner(ids)
        calls = {owner: self.me.call_async(f"worker{owner}", "sample", ids[at], fanout, seed) for owner, at in places.items() if owner != self.part.number}
        if self.part.number in places:
            at = places[self.part.number]
            chosen[at] = self.part.sample(ids[at], fanout, seed)
        for owner, call in calls.items():
            chosen[places[owner]] = np.asarray(call.wait())
        return chosen

    def rows(self, ids: Ids) -> Rows:
        """The feature rows of nodes, each row once, in one batch of reads."""
        unique, places = np.unique(ids, return_inverse=True)
        rows = np.empty((len(unique), WIDTH), np.float32)
        reads = []
        for owner, at in self.by_owner(unique).items():
            if owner == self.part.number:
                rows[at] = self.part.rows[unique[at] // self.part.n]
            else:
                ref = self.refs[f"worker{owner}"]
                reads += [tenrec.Read(ref, rows[i], int(unique[i]) // self.part.n * rows[i].nbytes) for i in at]
        self.me.transfer(reads)
        self.read += len(reads)
        found: Rows = rows[places.reshape(ids.shape)]
        return found


def embed(batch: Ids, seed: int, sample: Callable[[Ids, int, int], Ids], rows: Callable[[Ids], Rows]) -> Rows:
    """Two layers that add the mean of the neighbours to each node."""
    one = sample(batch, FANOUTS[0], seed)
    two = sample(one.reshape(-1), FANOUTS[1], seed + 1).reshape(*one.shape, FANOUTS[1])
    inner: Rows = rows(one) + rows(two).mean(axis=2)
    result: Rows = rows(batch) + inner.mean(axis=1)
    return result


def main() -> None:
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    whole = Part()  # for the comparison only
    part: Part | None = None

    @tenrec.register
    def sample(ids: tenrec.Tensor, fanout: int, seed: int) -> Ids:
        assert part is not None
        return part.sample(np.asarray(ids), fanout, seed)

    me = tenrec.init_rpc()
    part = Part(me.id, len(me.members()))
    with me.region(part.rows, "r") as region:
        refs: dict[str, Any] = me.all_gather(region.ref)  # returns when all have their part
        graph = Graph(me, part, refs)
        random = np.random.default_rng(me.id)
        for number in range(batches):
            batch = random.integers(NODES, size=BATCH)
            seed = 2 * number
            got = embed(batch, seed, graph.sample, graph.rows)
            if not np.array_equal(got, embed(batch, seed, whole.sample, lambda ids: whole.rows[ids])):
                sys.exit("sampling: the result differs from that of the whole graph")
        print(f"sampling: {batches} batches as of the whole graph, {graph.read} rows read from others")
        me.barrier()  # the others may still read
    tenrec.shutdown()


main()
