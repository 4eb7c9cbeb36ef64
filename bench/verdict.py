# SPDX-License-Identifier: Apache-2.0
"""verdict.py - the compared works, their results, and whether these reach their limits."""
import math
import re
import statistics

ENOUGH = 9  # ratios that a reach needs


class Pair:
    """One peer of a work: its command (None: not installed) and the compared figure."""

    def __init__(self, label, command, figure=None, reach=None, rounds=3):
        self.label, self.command, self.figure, self.reach = label, command, figure, reach
        self.rounds = None if reach is not None else rounds  # None: all
        self.ours, self.theirs, self.ratios = [], [], []

    def more(self):
        """Other figures of its row."""
        return {}

    def take(self, mine, theirs):
        """The compared figure of one round."""
        if theirs and theirs.get(self.figure):
            self.ours.append(mine[self.figure])
            self.theirs.append(theirs[self.figure])
            self.ratios.append(mine[self.figure] / theirs[self.figure])

    def verdict(self, at_least):
        if self.reach is None:
            return "" if self.ratios else "not measured"
        if not self.ratios:
            return "not measured"
        if len(self.ratios) < ENOUGH:
            return f"too few pairs ({len(self.ratios)})"
        middle = statistics.median(self.ratios)
        good = middle >= self.reach if at_least else middle <= self.reach
        return "met" if good else "missed"


def interval(ratios):
    """Limits between which the true median lies in at least 95 of 100 cases, by counting ranks; of
    fewer than six ratios, which cannot say that, all of them."""
    ordered = sorted(ratios)
    n, cut, tail = len(ordered), 0, 0.0
    while tail + math.comb(n, cut) / 2**n <= 0.025:
        tail += math.comb(n, cut) / 2**n
        cut += 1
    cut = max(cut - 1, 0)
    return ordered[cut], ordered[n - 1 - cut]


class Same(Pair):
    """The same work by another build of Tenrec: slower only if the whole interval is."""

    def __init__(self, label, command):
        super().__init__(label, command, rounds=None)

    def verdict(self, at_least):
        if len(self.ratios) < ENOUGH:
            return f"too few pairs ({len(self.ratios)})" if self.ratios else "not measured"
        low, high = interval(self.ratios)
        return "slower" if (high < 1 if at_least else low > 1) else "as fast"


class Without(Pair):
    """The same work without the layers of the chain that its messages pass `passes` times, in us: the
    difference is what they cost."""

    def __init__(self, label, command, passes):
        super().__init__(label, command, rounds=None)
        self.passes = passes

    def more(self):
        differences = [(ours - theirs) * 1e3 / self.passes for ours, theirs in zip(self.ours, self.theirs)]
        return {"layer_ns": statistics.median(differences)}

    def verdict(self, at_least):
        return f"{self.more()['layer_ns']:.0f} ns per layer and message" if self.ratios else "not measured"


class Work:
    """A work of Tenrec, and the peers with the same work. `figure` is a key of what the programs
    print; with `at_least` more of it is better. The first pair runs right beside Tenrec."""

    def __init__(self, name, command, figure, pairs, at_least=False):
        self.name, self.command, self.figure = name, command, figure
        self.pairs, self.at_least = pairs, at_least
        for pair in pairs:
            pair.figure = pair.figure or figure
        self.failures, self.transports = [], set()

    def matches(self, pattern):
        return re.search(pattern, " ".join([self.name] + [pair.label for pair in self.pairs]))

    def commands(self, number):
        """The commands of a round, once each; reversed in every other round."""
        due = [p.command for p in self.pairs if p.command and (p.rounds is None or number < p.rounds)]
        order = due[:1] + [self.command] + due[1:] if due else []
        order = list(dict.fromkeys(tuple(c) for c in order))
        return order[::-1] if number % 2 else order

    def take(self, got):
        """The figures of one round, by command; None for a failed command."""
        mine = got.get(tuple(self.command))
        if not mine:
            return
        self.transports.add(mine.get("transport", ""))
        for pair in self.pairs:
            pair.take(mine, got.get(tuple(pair.command or ())))

    def rows(self):
        return [self._row(pair) for pair in self.pairs]

    def _row(self, pair):
        row = {"work": self.name, "peer": pair.label, "figure": pair.figure,
               "reach": pair.reach, "at_least": self.at_least, "verdict": pair.verdict(self.at_least),
               "tenrec": pair.ours, "theirs": pair.theirs, "ratios": pair.ratios,
               "transports": sorted(self.transports - {""}), "failures": self.failures}
        if pair.ratios:
            row.update(ratio=statistics.median(pair.ratios), tenrec_median=statistics.median(pair.ours),
                       peer_median=statistics.median(pair.theirs), interval=interval(pair.ratios), **pair.more())
        return row


class Limit:
    """Limits of Tenrec alone: {figure: limit}; `exact`: neither more nor less."""

    pairs = ()

    def __init__(self, name, command, limits, exact=False):
        self.name, self.command, self.limits, self.exact = name, command, limits, exact
        self.failures, self.found = [], None

    def matches(self, pattern):
        return re.search(pattern, self.name)

    def commands(self, number):
        return [tuple(self.command)] if number == 0 else []

    def take(self, got):
        self.found = got.get(tuple(self.command)) or self.found

    def verdict(self):
        if not self.found or any(key not in self.found for key in self.limits):
            return "not measured"
        for key, limit in self.limits.items():
            if (abs(self.found[key] - limit) > 0.005) if self.exact else self.found[key] > limit:
                return "missed"
        return "met"

    def rows(self):
        return [{"work": self.name, "limits": self.limits, "exact": self.exact, "verdict": self.verdict(),
                 "found": {key: (self.found or {}).get(key) for key in self.limits},
                 "failures": self.failures}]
