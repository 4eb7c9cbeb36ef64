# SPDX-License-Identifier: Apache-2.0
"""programs.py - finds, builds and runs the measuring programs."""
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TIMEOUT_S = 120

# Debian packages of each peer.
PACKAGES = {
    "libtensorpipe": ["libtensorpipe-dev"],
    "torch": ["python3-torch"],
    "UCX": ["libucx-dev"],
    "libfabric": ["libfabric-dev"],
}
PROGRAMS = {"libtensorpipe": "tensorpipe_peer", "UCX": "ucx_peer", "libfabric": "fabric_peer"}


def build(folder, quiet, root=ROOT):
    """A release build of the tree `root` in `folder`."""
    log = folder + ".log"
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(log, "w", encoding="utf-8") as out:
        def call(*command):
            return subprocess.run(command, cwd=root, stdout=out, stderr=out, check=False).returncode
        # The binding for torch takes minutes to compile and is not measured here.
        setup = ["meson", "setup", folder, "-Dbuildtype=release", "-Dtests=false", "-Dtorch=disabled"]
        if os.path.exists(f"{folder}/build.ninja"):
            setup.append("--reconfigure")
        if not quiet:
            print(f"compare: building in {os.path.relpath(folder)}", file=sys.stderr)
        if call(*setup) or call("ninja", "-C", folder, "all", *benches(folder, root)):
            sys.exit(f"compare: the build failed; its output is in {log}")


def benches(folder, root):
    """The measuring programs of a build: without the tests, `all` has none of them."""
    targets = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], cwd=root, stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.findall(r"^(bench/[\w/]+): \w+_LINKER$", targets, re.MULTILINE)


def torch_python():
    """An interpreter that has torch.distributed.rpc, or None."""
    for python in ("/usr/bin/python3", sys.executable):
        try:
            done = subprocess.run([python, "-c", "import torch.distributed.rpc as r; r.init_rpc"],
                                  capture_output=True, timeout=120, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return python
    return None


class Programs:
    """Commands of the programs in a build folder; None for a peer that is not installed."""

    def __init__(self, folder, torch):
        self.folder, self.torch = f"{folder}/bench", torch

    def tenrec(self, *args):
        return [f"{self.folder}/tenrec_bench", *args]

    def grow(self, workers, rounds):
        return [f"{ROOT}/bench/grow", "--json", "--rounds", str(rounds), "--workers", str(workers),
                "--build", os.path.dirname(self.folder)]

    def raw(self, *args):
        return [f"{self.folder}/raw", *args]

    def peer(self, name, *args):
        if name == "torch":
            return [self.torch, f"{ROOT}/bench/peers/torch_peer.py", *args] if self.torch else None
        path = f"{self.folder}/peers/{PROGRAMS[name]}"
        return [path, *args] if os.path.exists(path) else None

    def absent(self):
        return [name for name in PACKAGES if not self.peer(name)]


def absent_text(name):
    return f"{name} ({' '.join(PACKAGES[name])})"


def install():
    """Installs the peers through apt; returns the exit status."""
    wanted = [p for packages in PACKAGES.values() for p in packages]
    missing = [p for p in wanted if subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", p],
                                                   capture_output=True, text=True, check=False).stdout != "installed"]
    if not missing:
        print("compare: all peers are installed")
        return 0
    command = ([] if os.geteuid() == 0 or not shutil.which("sudo") else ["sudo"]) + [
        "apt-get", "install", "-y", "--no-install-recommends", *missing]
    print("compare: " + " ".join(command), flush=True)
    return subprocess.run(command, check=False).returncode


def measure(command, env, failures):
    """The output of a program, one object for each line; None when it failed (noted once)."""
    # The plugins of the program's own build.
    env = {**env, "TENREC_PLUGIN_PATH": os.path.join(os.path.dirname(os.path.dirname(command[0])), "plugins")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=env, check=False)
        if done.returncode == 0:
            return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    except (subprocess.TimeoutExpired, ValueError) as problem:
        why = str(problem)
    text = f"{os.path.basename(command[0])} {' '.join(command[1:])}: {why}"
    if text not in failures:
        failures.append(text)
    return None
