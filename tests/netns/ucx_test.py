# SPDX-License-Identifier: Apache-2.0
"""ucx_test.py - workers of the backend ucx on three hosts, which are network namespaces (net.py):
UCX over TCP."""
import itertools
import tempfile
import time

import net
from cases import contains, equal, main, one_line, run, true
from crew import LONG_MS, TENREC, Crew, backend, within

ports = itertools.count(29500)  # this network has no other process


TCP = {"TENREC_BACKENDS__UCX__TLS": "[tcp]"}  # meant: no warning


def crew_on(*places, network=77, **env):
    """A worker on each of these hosts, joined, without a secret by default. Rank 0 serves the store."""
    where = net.address(places[0], network)
    here = {"MASTER_ADDR": where, "MASTER_PORT": str(next(ports)), "WORLD_SIZE": str(len(places)),
            "TENREC_SECURITY__MODE": "none", **env}
    crew = Crew()
    crew.url = f"tcp://{where}:{here['MASTER_PORT']}"
    try:
        crew.start([backend(RANK=str(rank), **here) for rank in range(len(places))], on_term="ignore",
                   before=[net.on(h) for h in places])
        crew.all("init")
    except BaseException:
        crew.__exit__(Exception)
        raise
    return crew


def debug_info(crew, worker, host):
    got = run(*net.on(host), TENREC, "info", "--worker", worker, "--store", crew.url,
              env=backend(TENREC_SECURITY__MODE="none"))
    true(got.returncode == 0, got.stderr)
    return got.stdout


def netns_ucx_calls_between_hosts_and_names_its_transport():
    with crew_on(0, 1, 2, **TCP) as crew:
        equal(set(crew.all("exchange 2")), {"18"}, "calls")
        text = debug_info(crew, "worker1", 2)
        contains(text, "ucx://10.77.0.2:")
        contains(text, "tcp/eth")
        crew.leave()


def netns_ucx_warns_once_when_it_fell_back_to_tcp():
    with crew_on(0, 1, 2) as crew:
        equal(set(crew.all("exchange 2")), {"18"}, "calls")
        ping = run(*net.on(2), TENREC, "ping", "worker1", "--store", crew.url, env=backend(TENREC_SECURITY__MODE="none"))
        equal((ping.returncode, ping.stderr), (0, ""), "status and errors of ping")
        contains(ping.stdout, "  transports  tcp/eth")
        crew.all(f"shutdown graceful {LONG_MS}")
        crew.release()
        for process in crew.processes:
            status, out, errors = crew.ended(process)
            equal((status, out), (0, ""), "status and output")
            equal(errors.count("UCX fell back to TCP"), 1, f"warnings in {errors!r}")
            contains(one_line(errors), "is on another host")
            contains(errors, "ucx_info -d")


def netns_ucx_does_not_warn_of_tcp_that_a_variable_names():
    with crew_on(0, 1, UCX_TLS="tcp,self") as crew:
        crew.all("exchange 2")
        crew.leave()


def netns_ucx_does_not_warn_of_tcp_within_one_host():
    with crew_on(0, 0) as crew:
        crew.all("exchange 2")
        contains(debug_info(crew, "worker1", 0), "ucx://10.77.0.1:")
        crew.leave()


def netns_ucx_carries_tensors_between_hosts():
    with crew_on(0, 1, 2, **TCP) as crew:
        for n in (1000, 300000, 3000000):
            for rank in range(3):
                crew[rank].say(f"tensor worker{(rank + 1) % 3} {LONG_MS} {n}")
            for rank in range(3):
                equal(crew[rank].well(), str(n), "sum")
        crew.leave()


def netns_ucx_finds_an_idle_host_that_is_cut_off():
    with crew_on(0, 1, 2, TENREC_BACKENDS__UCX__KEEPALIVE="1s", **TCP) as crew:
        crew.all("exchange 1")
        crew[0].do("start worker1 hold 0")
        crew[1].until_held()
        equal(crew[0].do(f"call worker1 echo {LONG_MS} y"), "y")  # its answer acknowledges all before
        since = time.monotonic()
        net.cut(1)
        try:
            code, worker, _ = crew[0].fails("await")
            equal((code, worker), ("EPEER_LOST", "worker1"))
            within(since, time.monotonic(), 8, "finding that an idle host is gone")
        finally:
            net.heal(1)
        crew[1].do("release")


def netns_ucx_proves_a_secret_between_hosts():
    with tempfile.TemporaryDirectory() as folder:
        key, other = f"{folder}/job.key", f"{folder}/other.key"
        for path in key, other:
            equal(run(TENREC, "secret", "new", path).returncode, 0, "status of 'tenrec secret new'")
        with crew_on(0, 1, 2, **TCP, TENREC_SECURITY__MODE="secret", TENREC_SECRET_FILE=key) as crew:
            equal(set(crew.all("exchange 2")), {"18"}, "calls")
            ping = [*net.on(2), TENREC, "ping", "worker1", "--store", crew.url, "--secret-file"]
            got = run(*ping, key, env=backend(TENREC_SECURITY__MODE="secret"))
            equal((got.returncode, got.stderr), (0, ""), "status and errors of ping")
            contains(got.stdout, "  transports  tcp/eth")
            got = run(*ping, other, env=backend(TENREC_SECURITY__MODE="secret"))
            equal((got.returncode, got.stdout), (1, ""), "status and output of ping with another secret")
            contains(got.stderr, "another group secret")
            crew.all(f"shutdown graceful {LONG_MS}")
            crew.release()
            for process in crew.processes:
                equal(crew.ended(process)[:2], (0, ""), "status and output")


def netns_ucx_is_refused_beyond_loopback_where_it_must_encrypt():
    with Crew() as crew:
        key = f"{crew.folder.name}/job.key"
        equal(run(TENREC, "secret", "new", key).returncode, 0, "status of 'tenrec secret new'")
        env = backend(RANK="0", WORLD_SIZE="2", MASTER_ADDR=net.address(0), MASTER_PORT=str(next(ports)),
                      TENREC_SECRET_FILE=key, TENREC_SECURITY__MODE="tls")
        crew.start([env], before=[net.on(0)])
        code, _, text = crew[0].fails("init")
        equal(code, "ECONFIG")
        contains(text, "plugin 'ucx' encrypts nothing, and listens at")


cases = [name for name in list(globals()) if name.startswith("netns_")]
net.enter(cases)
net.build()
main(globals(), "netns_", "netns")
