# SPDX-License-Identifier: Apache-2.0
"""ucx_test.py - what the tools show of the backend ucx: its probe, and the transports that UCX chose."""
import json
import os

from cases import contains, equal, main, run, true
from crew import TENREC, Crew, backend, limit


def well(*args, **env):
    got = run(TENREC, *args, env=backend(**env))
    equal((got.returncode, got.stderr), (0, ""), f"status and errors of {args}")
    return got.stdout


def probed(**env):
    (ucx,) = (b for b in json.loads(well("info", "--json", **env))["backends"] if b["name"] == "ucx")
    return {t["name"]: t for t in ucx["transports"]}, ucx["probe"]


def ucx_probe_names_what_is_viable_and_why_the_rest_is_not():
    ways, rest = probed()
    contains(ways["tcp"]["note"], "lo")
    true(ways["self"]["viable"], ways["self"])
    true(rest["ucx"], rest)
    if not os.path.exists("/sys/class/infiniband"):
        for name in ("rc_verbs", "rc_mlx5", "ud_mlx5"):
            contains(ways[name]["reason"], "InfiniBand")
    contains(ways["cuda_ipc"]["reason"], "memory of the host only")
    true(all(way["viable"] or way["reason"] for way in ways.values()), ways)


def ucx_probe_names_what_the_variables_leave_out():
    ways, _ = probed(UCX_TLS="self")
    contains(ways["tcp"]["reason"], "UCX_TLS and UCX_NET_DEVICES, leave it out")
    ways, rest = probed(UCX_TLS="rc_of_no_name")
    contains(rest["options"], "no transport can be opened")
    true("tcp" not in ways or not ways["tcp"]["viable"], ways)


def ucx_ping_shows_the_transports():
    with Crew().run(2) as crew:
        crew.all("init")
        store = f"tcp://127.0.0.1:{crew.port}"
        where = ["--store", store, "--timeout", f"{limit(10000)}ms"]
        got = json.loads(well("ping", "worker1", "--json", *where))
        equal((got["transports"], got["backend"], got["way"]), ("tcp/lo", "ucx", "messages of backend 'ucx'"))
        text = well("ping", "worker1", *where)
        contains(text, "  transports  tcp/lo\n")
        contains(text, "not cuda_ipc: backend ucx carries memory of the host only")
        crew.leave()  # and no worker has written a warning: they are on one host


main(globals(), "ucx_", "system_ucx")
