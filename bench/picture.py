# SPDX-License-Identifier: Apache-2.0
"""picture.py - time and bandwidth of one transfer over its size, for Tenrec and its peers."""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import programs

SIZES = [64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20]

# Dashes distinguish the transports, colours the peers.
DASHES = {"shm": "dashtype 1", "tcp": "dashtype 2", "raw": "dashtype 3"}
COLOURS = {"Tenrec": "#c8102e", "raw": "#808080", "libtensorpipe": "#1f5fbf", "torch": "#000000", "UCX": "#1b8a3a",
           "libfabric": "#e08a00", "Mercury": "#8a2be2", "gRPC": "#00a0b0", "ZeroMQ": "#8b5a2b", "nng": "#c060a0"}


def wanted(p):
    """(label, kind, command without sizes); a command is None when the peer is not here."""
    return [
        ("Tenrec, shared memory", "shm", p.tenrec("bandwidth", "busy", "shm")),
        ("Tenrec, TCP", "tcp", p.tenrec("bandwidth", "busy", "uv")),
        ("raw copy", "raw", p.raw("bandwidth", "busy", "copy")),
        ("raw TCP", "raw", p.raw("bandwidth", "busy", "tcp")),
        ("libtensorpipe, shm + cma", "shm", p.peer("libtensorpipe", "bandwidth", "busy", "shm_cma")),
        ("libtensorpipe, shm + basic", "shm", p.peer("libtensorpipe", "bandwidth", "busy", "shm_basic")),
        ("libtensorpipe, TCP", "tcp", p.peer("libtensorpipe", "bandwidth", "sleep", "uv")),
        ("torch, default", "shm", p.peer("torch", "bandwidth", "busy", "shm")),
        ("UCX, shared memory", "shm", p.peer("UCX", "bandwidth", "busy", "sm")),
        ("UCX, TCP", "tcp", p.peer("UCX", "bandwidth", "busy", "tcp")),
        ("libfabric, shared memory", "shm", p.peer("libfabric", "bandwidth", "busy", "shm")),
        ("Mercury, shared memory", "shm", p.peer("Mercury", "bandwidth", "busy", "na+sm")),
        ("gRPC, Unix", "tcp", p.peer("gRPC", "bandwidth", "adaptive", "unix")),
        ("ZeroMQ, TCP", "tcp", p.peer("ZeroMQ", "bandwidth", "sleep", "tcp")),
        ("nng, TCP", "tcp", p.peer("nng", "bandwidth", "sleep", "tcp")),
    ]


def measure(p, env, rounds, say):
    """[{label, kind, points: [[bytes, us, GB/s]]}], the medians of the rounds."""
    found = {}
    for number in range(rounds):
        for label, kind, command in wanted(p):
            if not command:
                continue
            failures = []
            rows = programs.measure(command + [",".join(map(str, SIZES))], env, failures) or []
            for why in failures:
                say(f"picture: {why}")
            points = found.setdefault((label, kind), {})
            for row in rows:
                points.setdefault(row["size_bytes"], []).append(row["p50_us"])
        say(f"picture {number + 1} of {rounds}")
    out = []
    for (label, kind), points in found.items():
        medians = [(size, statistics.median(values)) for size, values in sorted(points.items())]
        out.append({"label": label, "kind": kind,
                    "points": [[size, round(us, 4), round(size / (us * 1e3), 4)] for size, us in medians]})
    return out


def script(series, target, folder):
    """The script for gnuplot; writes the data into `folder`."""
    plots = {2: [], 3: []}
    for i, one in enumerate(series):
        path = f"{folder}/{i}.dat"
        with open(path, "w", encoding="ascii") as f:
            f.writelines(f"{size} {us} {gb}\n" for size, us, gb in one["points"])
        for column, lines in plots.items():
            title = f"title '{one['label']}'" if column == 2 else "notitle"
            who = re.split("[ ,]", one["label"])[0]
            lines.append(f"'{path}' using 1:{column} with linespoints linecolor rgb '{COLOURS[who]}' linewidth "
                         f"{3.5 if who == 'Tenrec' else 1.5} pointtype {4 + i % 10} pointsize 0.5 "
                         f"{DASHES[one['kind']]} {title}")
    return f"""set terminal svg size 1000,860 font 'sans-serif,13' background '#ffffff'
set output '{target}'
set multiplot layout 2,1
set logscale x 2
set format x '%.0b %BB'
set grid
set xrange [50:{1.4 * max(point[0] for one in series for point in one['points']):.0f}]
set key outside right top
set logscale y
set format y '%g'
set rmargin 32
set ylabel 'one transfer and its answer, microseconds'
plot {', '.join(plots[2])}
set ylabel 'GB/s'
set xlabel 'bytes of the tensor'
plot {', '.join(plots[3])}
unset multiplot
"""


def draw(series, target):
    gnuplot = shutil.which("gnuplot")
    if not gnuplot:
        print("compare: no picture without gnuplot (bench/compare --install)", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="bench-picture-") as folder:
        done = subprocess.run([gnuplot], input=script(series, os.path.abspath(target), folder), text=True,
                              capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"compare: gnuplot: {done.stderr.strip()}")
