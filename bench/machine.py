# SPDX-License-Identifier: Apache-2.0
"""machine.py - the other load of the machine: figures of a busy machine mean little."""
import os
import platform
import resource
import time

LOOK_S = 0.5          # duration of the probe before the first run
QUIET_BEFORE = 0.25   # busy processors during the probe
QUIET_FOREIGN = 0.1   # processors used by other programs
QUIET_STEAL = 0.02    # processors stolen by the host
QUIET_SPREAD = 1.6    # largest over smallest of one raw figure, in the middle of all of them


def name():
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def stat_s():
    """Seconds of busy processors so far, and seconds stolen by the host."""
    with open("/proc/stat", encoding="ascii") as f:
        ticks = [int(word) for word in f.readline().split()[1:]]
    hz = os.sysconf("SC_CLK_TCK")
    return (sum(ticks[:3]) + sum(ticks[5:7])) / hz, ticks[7] / hz


def own_s():
    """CPU time of this process and its reaped children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


class Watch:
    """Observes the machine until `report`."""

    def __init__(self):
        before = stat_s()[0]
        time.sleep(LOOK_S)
        self.begin, self.load = time.monotonic(), os.getloadavg()[0]
        self.busy, self.steal = stat_s()
        self.before = (self.busy - before) / LOOK_S
        self.own = own_s()

    def report(self, raw_figures):
        """`raw_figures`: lists, one of each raw program's figures over the rounds."""
        wall = max(time.monotonic() - self.begin, 0.001)
        busy, steal = stat_s()
        spreads = sorted(max(v) / min(v) for v in raw_figures if len(v) > 2 and min(v) > 0)
        return {"machine": name(), "processors": os.cpu_count(), "seconds": round(wall, 1),
                "load_before": round(self.load, 2), "busy_before": round(self.before, 2),
                "foreign": round(max(0.0, busy - self.busy - (own_s() - self.own)) / wall, 3),
                "steal": round((steal - self.steal) / wall, 3),
                "raw_spread": round(spreads[len(spreads) // 2], 2) if spreads else None}


def complaints(report):
    """Why these figures may mislead; empty on a quiet machine."""
    out = []
    if report.get("busy_before", 0) > QUIET_BEFORE:
        out.append(f"{report['busy_before']} processors were busy before")
    if report["foreign"] > QUIET_FOREIGN:
        out.append(f"others used {report['foreign']:.2f} processors meanwhile")
    if report["steal"] > QUIET_STEAL:
        out.append(f"the host took {report['steal']:.2f} processors away")
    if (report["raw_spread"] or 0) > QUIET_SPREAD:
        out.append(f"raw figures went up and down by {report['raw_spread']}x")
    return out
