# SPDX-License-Identifier: Apache-2.0
"""netns_test.py - workers on three hosts, which are network namespaces (net.py)."""
import itertools
import json
import os
import signal
import socket
import tempfile
import time

import net
from cases import Skipped, contains, equal, main, one_line, run, tcp_transport, true, until
import crew as crew_module
from crew import LIMIT_S, LONG_MS, TENREC, Crew, limit, within

KEYS = tempfile.TemporaryDirectory()
SECRET = {"TENREC_SECRET_FILE": f"{KEYS.name}/job.key"}  # of all groups
TCP = tcp_transport()
TLS = {"TENREC_SECURITY__MODE": "tls"}
SHM_DIR = "TENREC_BACKENDS__TENSORPIPE__SHM_DIR"
KEEPALIVE = "TENREC_BACKENDS__TENSORPIPE__KEEPALIVE"
ports = itertools.count(29500)  # this network has no other process


def backend(**more):
    return crew_module.backend(**{**SECRET, **more})


def crew_on(*places, v6=False, network=77, containers=(), hosts_file=False, store=None,
            changes=False, own=(), **env):
    """A worker on each of these hosts, joined. Rank 0 serves the store, at its address. `changes`:
    a group that may. `own`: more variables, by rank."""
    where = store or net.address(places[0], network, v6)
    here = {"MASTER_ADDR": where, "MASTER_PORT": str(next(ports))}
    if not changes:
        here["WORLD_SIZE"] = str(len(places))
    envs = [backend(**{"RANK": str(rank), **here, **env, **dict(own).get(rank, {})}) for rank in range(len(places))]
    before = [net.on(h, container=rank in containers, hosts_file=hosts_file)
              for rank, h in enumerate(places)]
    crew = Crew()
    crew.url = f"tcp://{f'[{where}]' if ':' in where else where}:{here['MASTER_PORT']}"
    try:
        crew.start(envs, on_term="ignore", before=before)
        if changes:
            crew[0].do("init")  # serves the store
        crew.all("init", list(crew.puppets)[1:] if changes else None)
    except BaseException:
        crew.__exit__(Exception)
        raise
    return crew


def look(crew, host, *args, **env):
    got = run(*net.on(host), TENREC, "ping", "--json", "--store", crew.url, *args, env=backend(**env))
    true(got.returncode == 0, got.stderr)
    return json.loads(got.stdout)


def addresses(crew, **env):
    """Where the members say that they are, without ports."""
    return [m["address"].rsplit(":", 1)[0] for m in look(crew, 2, **env)["members"]]


def works(crew):
    equal(set(crew.all("exchange 2")), {str(6 * len(crew.puppets))}, "calls")


# ---- where a worker listens ----------------------------------------------------------

def netns_publishes_the_address_towards_the_store():
    with crew_on(0, 1, 2) as crew:
        equal(addresses(crew), [f"{TCP}://10.77.0.{n}" for n in (1, 2, 3)])
        works(crew)
        crew.leave()


def netns_publishes_ipv6_when_the_store_is_there():
    with crew_on(0, 1, 2, v6=True) as crew:
        equal(addresses(crew), [f"{TCP}://[fd77::{n}]" for n in (1, 2, 3)])
        works(crew)
        crew.leave()


def netns_publishes_no_loopback_where_a_host_knows_itself_as_127_0_1_1():
    with crew_on(0, 1, 2, store="host0", hosts_file=True) as crew:
        crew.url = crew.url.replace("host0", net.address(0))
        equal(addresses(crew), [f"{TCP}://10.77.0.{n}" for n in (1, 2, 3)])
        works(crew)
        crew.leave()


def netns_warns_of_a_worker_that_other_hosts_can_call_without_a_secret():
    with crew_on(0, 1, TENREC_SECRET_FILE="", TENREC_SECURITY__MODE="") as crew:
        crew.all(f"shutdown graceful {LONG_MS}")
        crew.release()
        for rank, process in enumerate(crew.processes):
            status, out, errors = crew.ended(process)
            equal((status, out), (0, ""), "status and output")
            contains(one_line(errors), f"worker{rank}: listens at uv://10.77.0.{rank + 1}:")
            contains(errors, "in security mode none")


def netns_listens_on_the_interface_that_is_named():
    for wanted in ("eth1", "eth7,eth1", "10.78.0.0/24", "^eth0", "fd78::/64"):
        with crew_on(0, 1, TENREC_IFNAME=wanted) as crew:
            v6 = wanted.startswith("fd")
            equal(addresses(crew), [f"{TCP}://[fd78::{n}]" if v6 else f"{TCP}://10.78.0.{n}"
                                    for n in (1, 2)])
            works(crew)
            crew.leave()


def netns_family_counts_more_than_the_address_of_the_store():
    with crew_on(0, 1, TENREC_BACKENDS__TENSORPIPE__FAMILY="ipv6") as crew:
        for text in addresses(crew):
            contains(text, f"{TCP}://[fd7")
        works(crew)
        crew.leave()


def netns_lists_the_interfaces_when_no_interface_fits():
    env = backend(RANK="0", WORLD_SIZE="1", TENREC_IFNAME="ib0")
    with Crew() as crew:
        crew.start([env], before=[net.on(1)])
        code, _, text = crew[0].fails("init")
        equal(code, "ECONFIG")
        contains(text, '"ib0"; there are lo (127.0.0.1, ::1), eth0 (10.77.0.2, fd77::2), '
                       'eth1 (10.78.0.2, fd78::2)')


# ---- link-local addresses -------------------------------------------------------------

class Wire:
    """Between hosts 0 and 1, with link-local addresses only and interfaces of different names."""

    def __enter__(self):
        net.ip("link", "add", "left", "netns", "host0", "type", "veth", "peer", "name", "right", "netns", "host1")
        for host, name in enumerate(("left", "right")):
            net.ip("link", "set", name, "addrgenmode", "none", on=host)
            net.ip("link", "set", name, "up", on=host)
            net.ip("address", "add", f"fe80::{host + 1}/64", "dev", name, "nodad", on=host)
        return self

    def __exit__(self, *_):
        net.ip("link", "del", "left", on=0)


def netns_reaches_link_local_addresses_over_interfaces_of_different_names():
    with Wire(), crew_on(0, 1, store="fe80::1", own={0: {"MASTER_ADDR": "fe80::1%left"}, 1: {"MASTER_ADDR": "fe80::1%right"}}) as crew:
        works(crew)
        url = crew.url.replace("fe80::1", "fe80::1%right")
        got = run(*net.on(1), TENREC, "ping", "--json", "--store", url, "worker0", env=backend())
        true(got.returncode == 0, got.stderr)
        contains(got.stdout, f"{TCP}://[fe80::1]:")
        crew.leave()


def netns_says_what_a_link_local_address_lacks():
    with Wire(), Crew() as crew:
        crew.start([backend(RANK="1", WORLD_SIZE="2", MASTER_ADDR="fe80::1", MASTER_PORT=str(next(ports)))], before=[net.on(1)])
        code, _, text = crew[0].fails("init")
        equal(code, "EINVAL")
        contains(text, "link-local address fe80::1 needs %interface")


# ---- full queues ------------------------------------------------------------------------

class Setting:
    """One of the kernel's for the network of host 1."""

    def __init__(self, name, value, before):
        self.name, self.value, self.before = name, value, before

    def set(self, value):
        done = run(*net.on(1), "sh", "-c", f"echo {value} >/proc/sys/net/{self.name}")
        equal(done.returncode, 0, done.stderr)

    def __enter__(self):
        self.set(self.value)

    def __exit__(self, *_):
        self.set(self.before)


def short_queues():
    """Of listeners."""
    return Setting("core/somaxconn", 4, 4096)


def netns_shares_memory_when_the_queues_of_listeners_are_full():
    with short_queues(), crew_on(*[1] * 12) as crew:
        equal(set(crew.all("exchange 1")), {"36"}, "calls")
        for rank in range(1, 12):
            equal(crew[0].do(f"way {rank}").split()[0], "tenrec_ring")
        crew.leave()


def netns_dials_again_when_a_full_queue_resets_connections():
    with short_queues(), crew_on(*[1] * 12, TENREC_TRANSPORTS="[uv]") as crew:
        with Setting("ipv4/tcp_abort_on_overflow", 1, 0):
            equal(set(crew.all("exchange 1")), {"36"}, "calls")
        crew.leave()


# ---- which way they take ---------------------------------------------------------------

def netns_uses_shared_memory_on_a_host_and_tcp_between_two():
    with crew_on(0, 1, 1) as crew:
        works(crew)
        equal(crew[1].do("way 2"), "tenrec_ring tenrec_host")
        equal(crew[2].do("way 1"), "tenrec_ring tenrec_host")
        for a, b in ((0, 1), (1, 0), (0, 2), (2, 0)):
            equal(crew[a].do(f"way {b}"), f"{TCP} tenrec_lanes")
        crew.leave()


def netns_works_between_containers_of_one_host():
    """They share the network, and so Unix sockets, but not the numbers of processes."""
    with crew_on(0, 1, 1, 1, containers=(2, 3)) as crew:
        works(crew)
        equal(crew[1].do("way 2").split()[0], "tenrec_ring")
        equal(crew[2].do("way 3").split()[0], "tenrec_ring")
        equal(crew[1].do(f"tensor worker2 {LONG_MS} 4000000"), "4000000")  # too big to be inline
        equal(crew[2].do(f"tensor worker3 {LONG_MS} 4000000"), "4000000")
        equal([m.get("absent") for m in look(crew, 1)["members"]], [None] * 4)
        crew.leave()


def shares_memory(crew, a, b):
    equal(crew[a].do(f"way {b}"), "tenrec_ring_dir tenrec_host")
    equal(crew[b].do(f"way {a}"), "tenrec_ring_dir tenrec_host")
    for n in (1000, 4000000):
        equal(crew[a].do(f"tensor worker{b} {LONG_MS} {n}"), str(n))


def netns_shares_memory_between_containers_with_networks_of_their_own():
    """Two workers have a common folder, one of them at another path, and processes of its own. The
    third has no folder, and the network of the second."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as links:
        os.symlink(folder, f"{links}/same")
        with crew_on(0, 1, 1, containers=(1,),
                     own={0: {SHM_DIR: folder}, 1: {SHM_DIR: f"{links}/same"}}) as crew:
            works(crew)
            shares_memory(crew, 0, 1)
            equal(crew[0].do("way 2").split()[0], TCP)
            equal(crew[1].do("way 2").split()[0], "tenrec_ring")
            equal(len(os.listdir(folder)), 2, "sockets")
            crew.leave()
        equal(os.listdir(folder), [], "sockets that are left")


def netns_uses_tcp_between_containers_when_a_socket_in_their_folder_is_stale():
    with tempfile.TemporaryDirectory() as folder:
        with crew_on(0, 1, **{SHM_DIR: folder}) as crew:
            for name in os.listdir(folder):
                os.unlink(f"{folder}/{name}")
                with socket.socket(socket.AF_UNIX) as killed:
                    killed.bind(f"{folder}/{name}")
            works(crew)
            equal(crew[0].do("way 1").split()[0], TCP)
            crew.all(f"shutdown graceful {LONG_MS}")
            crew.release()
            for process in crew.processes:
                status, out, errors = crew.ended(process)
                equal((status, out), (0, ""), "status and output")
                contains(one_line(errors), "cannot be reached over tenrec_ring_dir, which is left out: Connection refused")


def netns_encrypts_between_hosts_in_mode_tls():
    with crew_on(0, 1, 1, **TLS) as crew:
        equal(addresses(crew, **TLS), [f"tls://10.77.0.{n}" for n in (1, 2, 2)])
        works(crew)
        equal(crew[0].do(f"tensor worker1 {LONG_MS} 4000000"), "4000000")
        equal(crew[0].do("way 1").split()[0], "tls")
        equal(crew[1].do("way 2").split()[0], "tenrec_ring")  # which is not encrypted, and stays on the host
        equal(look(crew, 2, "worker1", **TLS)["transport"], "tls")
        crew.leave()


def netns_calls_from_a_host_that_is_no_member():
    with crew_on(0, 1) as crew:
        got = look(crew, 2, "worker1")
        equal((got["transport"], got["calls"]), (TCP, 10))
        crew.leave()


# ---- when the network breaks --------------------------------------------------------------

def cut_and_heal(cut):
    with crew_on(0, 1, 2, **{KEEPALIVE: "1s"}) as crew:
        works(crew)
        crew[0].do(f"start worker1 hold {LONG_MS}")
        crew[1].until_held()
        cut(1)
        try:
            since = time.monotonic()
            # Not a longer limit where all is slow: the network is not.
            code, worker, text = crew[0].fails("call worker1 echo 500 x")
            equal((code, worker), ("ETIMEDOUT", "worker1"))
            within(since, time.monotonic(), 6, "a call with a limit of 0.5 s")
            equal(crew[0].do(f"call worker2 echo {LONG_MS} y"), "y")
            # A wait without a limit fails when the host does not answer any more.
            code, worker, text = crew[0].fails("await")
            equal((code, worker), ("EPEER_LOST", "worker1"))
            within(since, time.monotonic(), 12, "finding that a host is gone")
            contains(crew[0].event("lost")[1], "worker1")
            code, worker, text = crew[0].fails(f"call worker1 echo {limit(500)} x")
            true(code in ("ETIMEDOUT", "ECONNECT", "EPEER_LOST"), code)
            contains(text, "worker1")
        finally:
            net.heal(1)
        since = time.monotonic()
        equal(again(crew[0], "worker1"), "x")
        within(since, time.monotonic(), 10, "reaching it again")
        equal(again(crew[1], "worker2"), "x")
        crew[1].do("release")
        works(crew)
        crew.leave()


def again(puppet, to):
    """Calls until it works."""
    until = time.monotonic() + LIMIT_S
    while True:
        puppet.say(f"call {to} echo {limit(500)} x")
        answer = puppet.answer()
        if answer.startswith("ok") or time.monotonic() > until:
            return answer[3:]


def netns_finds_a_host_cut_off_and_reaches_the_host_again():
    cut_and_heal(net.cut)


def netns_finds_a_host_without_cable_and_reaches_the_host_again():
    cut_and_heal(net.unplug)


def netns_finds_an_idle_host_that_is_cut_off():
    with crew_on(0, 1, 2, **{KEEPALIVE: "1s"}) as crew:
        works(crew)
        crew[0].do(f"start worker1 hold 0")
        crew[1].until_held()
        since = time.monotonic()
        net.cut(1)
        try:
            code, worker, _ = crew[0].fails("await")
            equal((code, worker), ("EPEER_LOST", "worker1"))
            within(since, time.monotonic(), 12, "finding that an idle host is gone")
        finally:
            net.heal(1)
        equal(again(crew[0], "worker1"), "x")
        crew[1].do("release")
        crew.leave()


def netns_takes_a_host_that_is_cut_off_out_of_a_group_that_changes():
    with crew_on(0, 1, 2, changes=True, TENREC_WORKER__HEARTBEAT=f"{limit(300)}ms",
                 TENREC_WORKER__HEARTBEAT_MISSES="14") as crew:
        works(crew)
        net.cut(1)
        try:
            for rank in (0, 2):
                until(lambda r=rank: fails_with(crew[r], "worker1", "EPEER_UNKNOWN"), "its removal")
            equal(crew[0].do(f"call worker2 echo {LONG_MS} y"), "y")
        finally:
            net.heal(1)
        until(lambda: fails_with(crew[1], "worker0", "EGROUP"), "hearing that it was taken out")
        crew[1].do("shutdown immediate 0")
        crew[1].do("again")  # joins again
        until(lambda: set(crew.all("exchange 1")) == {"9"}, "all calling all")
        for rank in (2, 1, 0):
            crew[rank].do(f"shutdown graceful {LONG_MS}")


def fails_with(puppet, to, code):
    puppet.say(f"call {to} echo {limit(300)} x")
    return puppet.answer().split()[:2] == ["fail", code]


def netns_waits_for_a_worker_that_is_stopped():
    with crew_on(0, 1, 2, **{KEEPALIVE: "1s"}) as crew:
        works(crew)
        crew[1].stop()
        code, worker, _ = crew[0].fails(f"call worker1 echo {limit(300)} x")
        equal((code, worker), ("ETIMEDOUT", "worker1"))
        crew[0].say(f"call worker1 echo {LONG_MS} late")
        # Longer than a host may be silent; this one answers for its worker, so nothing is lost.
        equal(crew[2].fails("call worker1 echo 6000 x")[0], "ETIMEDOUT")
        crew[1].send_signal(signal.SIGCONT)
        equal(crew[0].well(), "late")
        equal(crew[0].told, [], "events")
        works(crew)
        crew.leave()


def netns_carries_all_tensors_over_a_bad_line():
    with net.Weather(delay_ms=20, loss=0.01) as weather:
        with crew_on(0, 1, 2) as crew:
            for n in (1000, 300000, 1500000):
                for rank in range(3):
                    crew[rank].say(f"tensor worker{(rank + 1) % 3} {LONG_MS} {n}")
                for rank in range(3):
                    equal(crew[rank].well(), str(n), f"sum with {weather.what}")
            works(crew)
            crew.leave()
    true(weather.lost > 0, f"of {weather.carried} frames none was lost")


cases = [name for name in list(globals()) if name.startswith("netns_")]
net.enter(cases)
net.build()
equal(run(TENREC, "secret", "new", SECRET["TENREC_SECRET_FILE"]).returncode, 0, "status of 'tenrec secret new'")
main(globals(), "netns_", "netns")
