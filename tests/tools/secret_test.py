# SPDX-License-Identifier: Apache-2.0
"""secret_test.py TENREC - the group secret of `tenrec run`, and its way to the workers."""
import contextlib
import os
import signal
import sys
import tempfile

from cases import Skipped, contains, environment, equal, main, one_line, run, start, true
from ports import free_port

TENREC = os.path.abspath(sys.argv[1])
KEY = "00ff" * 16  # of a file

# What a program that has no library of ours can do with the variables: by_fd, by_socket.
GET = """
import os, socket
def by_fd():
    return os.pread(int(os.environ["TENREC_SECRET_FD"]), 8192, 0)
def by_socket(name=None):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(30)
        s.connect("\\0" + (name or os.environ["TENREC_SECRET_SOCKET"]))
        try:
            return s.recv(8192)
        except ConnectionResetError:
            return b""
"""


def python(code):
    return [sys.executable, "-c", GET + code]


def launched(code, *options, n=1, **more):
    return run(TENREC, "run", "-n", n, *options, "--", *python(code), **more)


def well(got):
    equal((got.returncode, got.stderr), (0, ""), "status and errors")
    return sorted(line.split("] ", 1)[1] for line in got.stdout.splitlines())


@contextlib.contextmanager
def key_file(text=KEY + "\n", mode=0o600):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/job.key"
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        os.chmod(path, mode)
        yield path


def secret_new_makes_a_file_that_only_its_owner_can_read():
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for path in (f"{folder}/a", f"{folder}/b"):
            equal(run(TENREC, "secret", "new", path).returncode, 0, "exit status")
            equal(os.stat(path).st_mode & 0o777, 0o600, "mode")
            with open(path, encoding="ascii") as f:
                made.append(f.read())
            (secret,) = well(launched("print(by_fd().hex())", "--secret-file", path))
            true(secret.endswith(made[-1].strip()), f"{secret} is not that of the file")
        true(made[0] != made[1] and len(made[0]) == 65, f"{made}")
        got = run(TENREC, "secret", "new", path)
        equal((got.returncode, got.stdout), (1, ""))
        contains(one_line(got.stderr), path)
    for args in ([], ["new"], ["old", "x"], ["new", "x", "y"]):
        got = run(TENREC, "secret", *args)
        equal((got.returncode, got.stdout), (2, ""))
        contains(one_line(got.stderr), "'new FILE'")


def secret_reaches_all_workers():
    secrets = well(launched("print(by_fd().hex())", n=3))
    equal((len(secrets), len(set(secrets))), (3, 1), "workers and secrets")
    true(len(secrets[0]) >= 64, f"a short secret: {secrets}")


def secret_differs_between_runs():
    first, second = (well(launched("print(by_fd().hex())")) for _ in range(2))
    true(first != second, f"{first} twice")


def secret_cannot_be_changed_by_a_worker():
    equal(well(launched("import mmap\n"
                          "fd = int(os.environ['TENREC_SECRET_FD'])\n"
                          "for change in (lambda: os.pwrite(fd, b'x', 0), lambda: os.ftruncate(fd, 1)):\n"
                          "    try:\n"
                          "        change()\n"
                          "    except PermissionError:\n"
                          "        print('refused')")), ["refused", "refused"])


def secret_comes_by_the_socket_to_a_program_without_descriptors():
    equal(well(launched("import subprocess, sys\n"
                          "child = subprocess.run([sys.executable, '-c', sys.argv[1]], close_fds=True,\n"
                          "                       stdout=subprocess.PIPE, check=True)\n"
                          "print(child.stdout == by_fd().hex().encode())".replace(
                              "sys.argv[1]", repr(GET + "print(by_socket().hex(), end='')")))), ["True"])


def secret_is_that_of_the_file():
    with key_file() as path:
        (secret,) = well(launched("print(by_fd().hex())", "--secret-file", path))
        true(secret.endswith(KEY), f"{secret} does not end with {KEY}")


def secret_is_in_no_variable_and_no_argument():
    with key_file() as path:
        out = well(launched("for pid in (os.getpid(), os.getppid()):\n"
                              "    for what in ('environ', 'cmdline'):\n"
                              "        with open(f'/proc/{pid}/{what}', 'rb') as f:\n"
                              "            print(f.read().hex())\n"
                              "print(' '.join(f'{k}={v}' for k, v in os.environ.items()).encode().hex())",
                              "--secret-file", path))
    equal(len(out), 5)
    for text in (bytes.fromhex(line) for line in out):
        for form in (bytes.fromhex(KEY), KEY.encode(), KEY.upper().encode(), bytes.fromhex(KEY)[:8]):
            true(form not in text, f"{form} is in {text}")
    # The search finds files that exist.
    contains(b"".join(bytes.fromhex(line) for line in out).decode(errors="replace"), path)


def secret_reaches_a_worker_that_is_started_again():
    got = run(TENREC, "run", "--elastic", "1:1", "--", *python(
        "print(by_fd().hex(), by_socket() == by_fd(), flush=True)\n"
        "raise SystemExit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0')"))
    equal(got.returncode, 0, "exit status")
    first, second = (line.split("] ", 1)[1] for line in got.stdout.splitlines())
    equal(first, second)
    contains(first, "True")


def secret_goes_to_the_workers_of_a_run_in_a_run():
    inner = GET + "print(by_fd().hex(), by_socket() == by_fd())"
    equal(len(set(well(launched(
        f"print(by_fd().hex(), True, flush=True)\n"
        f"import subprocess, sys\n"
        f"for closed in (True, False):\n"
        f"    out = subprocess.run([{TENREC!r}, 'run', '-n', '1', sys.executable, '-c', {inner!r}],\n"
        f"                         close_fds=closed, stdout=subprocess.PIPE, check=True).stdout.decode()\n"
        f"    print(out.removeprefix('[0] '), end='', flush=True)")))), 1, "different secrets")


def secret_of_an_outer_launcher_is_missed_when_it_cannot_be_had():
    for name, value in (("TENREC_SECRET_FD", "77"), ("TENREC_SECRET_SOCKET", "tenrec-gone"),
                        ("TENREC_SECRET_FILE", "/nonexistent/key")):
        got = launched("print('never')", env=environment(**{name: value}))
        equal((got.returncode, got.stdout), (1, ""))
        contains(one_line(got.stderr), name)


def secret_variables_from_outside_reach_no_worker():
    stale = environment(TENREC_SECRET_FD="77", TENREC_SECRET_SOCKET="tenrec-gone", TENREC_SECRET_FILE="/nonexistent")
    tell = "print([os.environ.get('TENREC_SECRET_' + k) for k in ('FD', 'SOCKET', 'FILE')])"
    equal(well(launched(tell, "--insecure", env=stale)), ["[None, None, None]"])
    with key_file() as path:
        (told,) = well(launched(tell + "; assert by_fd() == by_socket()", "--secret-file", path, env=stale))
    true("'77'" not in told and "gone" not in told and told.endswith(", None]"), told)


def secret_of_the_file_variable_is_handed_on():
    with key_file() as path:
        (secret,) = well(launched("print(by_fd().hex(), 'TENREC_SECRET_FILE' in os.environ)",
                                    env=environment(TENREC_SECRET_FILE=path)))
    true(secret.endswith(KEY + " False"), secret)


@contextlib.contextmanager
def config_file(security):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/c.yaml"
        with open(path, "w", encoding="ascii") as f:
            f.write(f"security: {{ {security} }}\n")
        yield path


def secret_of_the_configuration_goes_before_that_of_the_environment():
    stale = environment(TENREC_SECRET_FILE="/nonexistent/key")
    with key_file() as key, config_file(f"secret_file: {key}") as path:
        (secret,) = well(launched("print(by_fd().hex())", "-c", path, env=stale))
        true(secret.endswith(KEY), f"{secret} does not end with {KEY}")
    with config_file("mode: none") as path:
        equal(well(launched("print('TENREC_SECRET_FD' in os.environ)", "-c", path, env=stale)), ["False"])
    with config_file("mode: secret") as path:
        got = launched("print('never')", "-c", path, env=stale)
        equal((got.returncode, got.stdout), (1, ""))
        contains(one_line(got.stderr), "TENREC_SECRET_FILE")


def secret_file_may_be_given_twice_but_not_two_of_them():
    with key_file() as key, key_file("11" * 32 + "\n") as other, config_file(f"secret_file: {key}") as path:
        (secret,) = well(launched("print(by_fd().hex())", "-c", path, "--secret-file", key))
        true(secret.endswith(KEY), f"{secret} does not end with {KEY}")
        got = launched("print('never')", "-c", path, "--secret-file", other)
        equal((got.returncode, got.stdout), (1, ""))
        contains(one_line(got.stderr), "with another secret")


def secret_file_that_others_can_read_is_refused():
    with key_file(mode=0o644) as path:
        got = launched("print('never')", "--secret-file", path)
    equal((got.returncode, got.stdout), (1, ""))
    contains(one_line(got.stderr), path)
    contains(got.stderr, "chmod 600")


def secret_is_refused_to_other_users():
    if os.geteuid() != 0:
        raise Skipped("only root can start a process of another user")
    equal(well(launched("name = os.environ['TENREC_SECRET_SOCKET']\n"
                          "if os.fork() == 0:\n"
                          "    os.setresuid(65534, 65534, 65534)\n"
                          "    print(by_socket(name))\n"
                          "    os._exit(0)\n"
                          "assert os.wait()[1] == 0\n"
                          "print(by_socket(name) == by_fd())\n")), ["True", "b''"])


def secret_is_asked_for_where_other_hosts_take_part():
    for options, part in ((["--elastic", "1:1", "--join", "tcp://192.0.2.7:29500"], "--join"),
                          (["--elastic", "1:1", "--join", "redis://127.0.0.1:1/0"], "--join"),
                          (["-n", "1", "--serve", "0.0.0.0"], "--serve")):
        got = run(TENREC, "run", *options, "true")
        equal((got.returncode, got.stdout), (1, ""))
        contains(one_line(got.stderr), part)
        contains(got.stderr, "--secret-file FILE")
        contains(got.stderr, "--insecure")
        with key_file() as path:
            for answer in (["--insecure"], ["--secret-file", path]):
                got = run(TENREC, "run", *options, *answer, "true")
                equal((got.returncode, got.stderr), (0, ""), f"{options} {answer}")


def secret_is_that_of_the_launcher_whose_store_is_joined():
    with key_file() as path:
        p = start(TENREC, "run", "-n", "1", "--secret-file", path, "sh", "-c", "echo $MASTER_PORT; exec sleep 300")
        port = p.stdout.readline().split()[-1]
        for host in ("127.0.0.1", "localhost"):
            got = run(TENREC, "run", "--elastic", "1:1", "--join", f"tcp://{host}:{port}", "--",
                      *python("print(by_fd().hex())"))
            true(well(got)[0].endswith(KEY), f"{got.stdout} does not end with {KEY}")
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=60)


@contextlib.contextmanager
def squatter(user=None):
    """A process that has the name of the socket before the launcher of a store, and the port of that store."""
    port = free_port()
    code = ("import os, socket\n"
            f"os.setuid({os.geteuid() if user is None else user})\n"
            "with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:\n"
            f"    s.bind('\\0tenrec/{os.geteuid()}/{port}/127.0.0.1')\n"
            "    s.listen()\n"
            "    print(flush=True)\n"
            "    s.accept()[0].recv(1)")
    p = start(sys.executable, "-c", code)
    try:
        equal(p.stdout.readline(), "\n")
        yield port
    finally:
        p.kill()
        p.communicate(timeout=60)


def secret_reaches_the_workers_when_another_process_has_the_name():
    with squatter() as port:
        equal(well(launched("print(by_socket() == by_fd())", "--serve", f"127.0.0.1:{port}")), ["True"])


def secret_is_not_taken_from_a_process_of_another_user():
    if os.geteuid() != 0:
        raise Skipped("only root can start a process of another user")
    with squatter(user=65534) as port:
        got = run(TENREC, "run", "--elastic", "1:1", "--join", f"tcp://127.0.0.1:{port}", "true")
        equal((got.returncode, got.stdout), (1, ""))
        contains(one_line(got.stderr), "another user")


def secret_options_that_disagree_are_refused():
    with key_file() as path:
        got = launched("print('never')", "--secret-file", path, "--insecure")
    equal((got.returncode, got.stdout), (2, ""))
    contains(one_line(got.stderr), "exclude")


main(globals(), "secret_")
