# SPDX-License-Identifier: Apache-2.0
"""secret_test.py - only members, and tools that have their secret, speak to the workers of a run."""
import contextlib
import os
import subprocess
import tempfile

from cases import Skipped, contains, equal, main, one_line, run, true
from crew import BACKEND, LONG_MS, TENREC, Crew, backend, limit, store_of

LIMIT = f"{limit(10000)}ms"
OTHER = 65534  # a user
# Of a configuration: the backend, where it is none that is always there.
BACKENDS = "backends: { ucx: { plugin: ucx } }\n" if BACKEND == "ucx" else ""


@contextlib.contextmanager
def key_files(n):
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{i}.key" for i in range(n)]
        for path in paths:
            equal(run(TENREC, "secret", "new", path, env=backend()).returncode, 0, "exit status")
        yield paths


def ping(crew, *args, **more):
    return run(TENREC, "ping", "worker0", "--store", store_of(crew[0]), "--timeout", LIMIT, *args,
               env=backend(), **more)


def info(crew, *args, **more):
    return run(TENREC, "info", "--worker", "worker0", "--store", store_of(crew[0]), "--timeout", LIMIT, *args,
               env=backend(), **more)


def well(got):
    equal((got.returncode, got.stderr), (0, ""), "status and errors")


def refused(got):
    equal((got.returncode, got.stdout), (1, ""), "status and output")
    return one_line(got.stderr)


def leave_after_a_refusal(crew, told):
    crew.all(f"shutdown graceful {LONG_MS}")
    crew.release()
    status, out, errors = crew.ended()
    equal((status, out), (0, ""), "status and output")
    contains(errors, told)


def secret_lets_workers_of_a_run_call_each_other():
    with Crew().run(2) as crew:
        crew.all("init")
        for look in ping, info:
            well(look(crew))
        crew.leave()


def secret_of_a_file_is_asked_of_a_tool():
    with key_files(2) as (ours, other), Crew().run(1, "--secret-file", ours) as crew:
        crew.all("init")
        for look in ping, info:
            well(look(crew, "--secret-file", ours))
            contains(refused(look(crew, "--secret-file", other)), "another group secret")
        leave_after_a_refusal(crew, "has another group secret")


def secret_of_the_configuration_is_that_of_the_run_and_of_a_tool():
    with key_files(1) as (ours,), tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(f"security: {{ mode: secret, secret_file: {ours} }}\n{BACKENDS}")
        f.flush()
        with Crew().run(1, "--config", f.name) as crew:
            crew.all("init")
            well(ping(crew, "--config", f.name))
            well(ping(crew, "--secret-file", ours))
            crew.leave()


def secret_file_is_of_no_use_where_the_configuration_demands_no_secret():
    with key_files(1) as (ours,), tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("security: { mode: none }\n" + BACKENDS)
        f.flush()
        for args in (["run", "-n", "1", "--config", f.name, "--secret-file", ours, "true"],
                     ["ping", "--config", f.name, "--secret-file", ours, "--store", "tcp://127.0.0.1:1"]):
            contains(refused(run(TENREC, *args, env=backend())), f"mode 'none' ({f.name}:1:")


def secret_is_not_given_to_other_users():
    if os.geteuid() != 0:
        raise Skipped("only root can start a process of another user")
    with Crew().run(1) as crew:
        crew.all("init")
        for look in ping, info:
            text = refused(look(crew, user=OTHER, group=OTHER, extra_groups=[]))
            contains(text, "asks for a group secret; none was given")
            contains(text, "--secret-file")
        leave_after_a_refusal(crew, "proves no membership")


def secret_is_not_asked_for_in_an_insecure_run():
    with Crew().run(1, "--insecure") as crew:
        crew.all("init")
        for look in ping, info:
            well(look(crew))
        crew.leave()


def secret_comes_to_a_tool_that_a_worker_starts_without_descriptors():
    script = 'import os, subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], close_fds=True).returncode)'
    with Crew().run(1) as crew:
        crew.all("init")
        with open(f"/proc/{crew[0].pid}/environ", "rb") as f:
            env = dict(pair.split(b"=", 1) for pair in f.read().split(b"\0") if b"=" in pair)
        true(b"TENREC_SECRET_SOCKET" in env, f"variables are {env}")
        got = subprocess.run(["/usr/bin/env", "python3", "-c", script, TENREC, "ping", "worker0", "--timeout", LIMIT],
                             env=env, capture_output=True, text=True, timeout=120, check=False)
        well(got)
        crew.leave()


main(globals(), "secret_")
