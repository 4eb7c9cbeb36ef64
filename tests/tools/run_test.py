# SPDX-License-Identifier: Apache-2.0
"""run_test.py TENREC - the contract of `tenrec run`."""
import fcntl
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios

from cases import (alive, contains, environment, equal, main, one_line, run, start, true, until)

TENREC = os.path.abspath(sys.argv[1])


def workers(n, script, *options, **more):
    return run(TENREC, "run", "-n", n, *options, "--", "sh", "-c", script, **more)


def lines_of(rank, text):
    return [line.split("] ", 1)[1] for line in text.splitlines() if line.startswith(f"[{rank}] ")]


def started(n, script, *options):
    """A run whose workers have each written a number first, and these numbers."""
    p = start(TENREC, "run", "-n", n, *options, "--", "sh", "-c", script)
    pids = [int(p.stdout.readline().split()[-1]) for _ in range(n)]
    return p, pids


def run_prefixes_every_line_with_the_rank():
    got = workers(3, "echo one; echo two >&2; echo three")
    equal(got.returncode, 0, "exit status")
    for rank in range(3):
        equal(lines_of(rank, got.stdout), ["one", "three"])
        equal(lines_of(rank, got.stderr), ["two"])


def run_ends_a_line_that_has_no_end():
    equal(workers(1, "printf 'first\\nlast'").stdout, "[0] first\n[0] last\n")


def run_joins_a_line_that_comes_in_parts():
    equal(workers(1, "printf a; sleep 0.1; printf b; sleep 0.1; echo c").stdout, "[0] abc\n")


def run_keeps_empty_lines_and_other_bytes():
    got = workers(1, r"printf '\n\000\377\n'", text=False)
    equal(got.stdout, b"[0] \n[0] \x00\xff\n")


def run_keeps_long_lines_whole_when_several_write():
    got = workers(3, "head -c 300000 /dev/zero | tr '\\0' $RANK; echo; echo end")
    for rank in range(3):
        equal(lines_of(rank, got.stdout), [str(rank) * 300000, "end"])
    equal(len(got.stdout.splitlines()), 6, "number of lines")


def run_sets_the_variables_of_torchrun():
    got = workers(2, "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR "
                     "$TORCHELASTIC_USE_AGENT_STORE $TORCHELASTIC_RESTART_COUNT "
                     "$TORCHELASTIC_MAX_RESTARTS $GROUP_RANK $GROUP_WORLD_SIZE $ROLE_RANK "
                     "$ROLE_WORLD_SIZE $ROLE_NAME; test $MASTER_PORT -gt 0 && test -n "
                     "\"$TENREC_RUN_ID\" && test \"$TORCHELASTIC_RUN_ID\" = \"$TENREC_RUN_ID\"")
    equal(got.returncode, 0, "exit status")
    for rank in range(2):
        equal(lines_of(rank, got.stdout), [f"{rank} {rank} 2 2 127.0.0.1 True 0 0 0 1 {rank} 2 default"])


def run_replaces_variables_that_are_set_already():
    got = workers(2, "echo $RANK $WORLD_SIZE $MASTER_ADDR; env | grep -c ^RANK=",
                  env=environment(RANK="7", WORLD_SIZE="9", MASTER_ADDR="far.away"))
    equal(lines_of(1, got.stdout), ["1 2 127.0.0.1", "1"])


def run_gives_workers_one_file_for_what_they_read():
    got = workers(2, "readlink /proc/self/fd/$TENREC_HOST_FD; head -c 8 /proc/self/fd/$TENREC_HOST_FD; echo")
    for rank in range(2):
        contains(lines_of(rank, got.stdout)[0], "/memfd:tenrec-host")
        equal(lines_of(rank, got.stdout)[1], "TNRHOST2")
    outer = environment(TENREC_HOST_FD="5")
    equal(lines_of(0, workers(1, "echo ${TENREC_HOST_FD-none}", env=outer).stdout), ["none"])


def run_makes_the_config_path_absolute():
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/my.yaml", "w", encoding="ascii") as f:
            f.write("backend: tensorpipe\n")
        for env in (environment(), environment(TENREC_CONFIG="other.yaml")):
            got = workers(1, "echo $TENREC_CONFIG", "--config", "my.yaml", cwd=folder, env=env)
            equal(lines_of(0, got.stdout), [os.path.realpath(f"{folder}/my.yaml")])


def run_refuses_a_config_that_is_not_there():
    got = workers(1, "echo never", "--config", "/nonexistent/x.yaml")
    equal((got.returncode, got.stdout), (1, ""))
    contains(one_line(got.stderr), "/nonexistent/x.yaml")


def run_serves_a_store_while_workers_run():
    p, ports = started(2, "echo $MASTER_PORT; exec sleep 60")
    equal(ports[0], ports[1])
    with socket.create_connection(("127.0.0.1", ports[0]), timeout=10):
        pass
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)


def run_gives_two_runs_a_store_and_an_id_each():
    def begin():
        p = start(TENREC, "run", "-n", 1, "sh", "-c",
                  "echo $MASTER_PORT $TENREC_RUN_ID; exec sleep 60")
        return p, p.stdout.readline().split()[1:]
    (one, a), (two, b) = begin(), begin()
    true(a[0] != b[0] and a[1] != b[1], f"{a} and {b} are not different")
    for p in (one, two):
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=60)


def run_tells_the_first_failing_rank_and_its_exit_status():
    got = workers(4, "if [ $RANK = 2 ]; then exit 7; fi; sleep 60")
    equal(got.returncode, 7, "exit status")
    contains(one_line(got.stderr), "rank 2 failed: exit status 7")


def run_tells_the_signal_that_killed_a_rank():
    got = workers(2, "if [ $RANK = 1 ]; then kill -SEGV $$; fi; sleep 60")
    equal(got.returncode, 128 + signal.SIGSEGV, "exit status")
    contains(one_line(got.stderr), "rank 1 failed: killed by SIGSEGV")


def run_keeps_the_first_failure_when_other_workers_fail_later():
    got = workers(2, "trap 'exit 9' TERM; if [ $RANK = 0 ]; then exit 3; fi; "
                     "while :; do sleep 0.05; done")
    equal(got.returncode, 3, "exit status")
    contains(got.stderr, "rank 0 failed: exit status 3")
    true("rank 1 failed" not in got.stderr, f"rank 1 is blamed: {got.stderr!r}")


def run_lets_the_other_workers_go_on_when_told_to():
    got = workers(3, "[ $RANK = 1 ] && kill -KILL $$; [ $RANK = 2 ] && exit 5; read x; echo end", "--keep-going")
    equal(got.returncode in (5, 137), True, "exit status")
    contains(got.stderr, "rank 1 failed: killed by SIGKILL")
    contains(got.stderr, "rank 2 failed: exit status 5")
    equal(lines_of(0, got.stdout), ["end"])


def run_kills_workers_that_ignore_the_end_of_others():
    p, pids = started(2, "trap '' TERM; trap 'exit 5' USR1; echo $$; while :; do sleep 0.05; done", "--grace", "100ms")
    os.kill(pids[0], signal.SIGUSR1)
    _, errors = p.communicate(timeout=60)
    equal(p.returncode, 5, "exit status")
    contains(errors, "did not end within 0.1 s")
    true(not any(alive(pid) for pid in pids), "a worker is left")


def run_forwards_signals_to_all_workers():
    for sig in (signal.SIGINT, signal.SIGTERM):
        name = sig.name[3:]
        p, _ = started(2, f"trap 'echo got {name}; exit 0' {name}; echo $$; "
                          "while :; do sleep 0.05; done")
        p.send_signal(sig)
        out, errors = p.communicate(timeout=60)
        equal(p.returncode, 0, "exit status")
        true("tenrec run" not in errors, f"complains: {errors!r}")
        for rank in range(2):
            equal(lines_of(rank, out), [f"got {name}"])


def run_exits_as_the_worker_that_a_forwarded_signal_ended():
    p, _ = started(2, "echo $$; exec sleep 60")
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)
    equal(p.returncode, 128 + signal.SIGTERM, "exit status")


def run_kills_all_workers_at_the_second_signal():
    p, pids = started(2, "trap 'echo no' TERM; echo $$; while :; do sleep 0.05; done",
                      "--grace", "1h")
    p.send_signal(signal.SIGTERM)
    p.stdout.readline()
    p.send_signal(signal.SIGTERM)
    _, errors = p.communicate(timeout=60)
    equal(p.returncode, 128 + signal.SIGKILL, "exit status")
    contains(errors, "SIGTERM again")
    true(not any(alive(pid) for pid in pids), "a worker is left")


def run_leaves_no_worker_behind():
    p, pids = started(3, "echo $$; while :; do sleep 0.05; done")
    p.kill()
    p.communicate(timeout=60)
    until(lambda: not any(alive(pid) for pid in pids), "the end of all workers")


def run_ends_processes_that_a_worker_left_behind():
    p, children = started(1, "sleep 300 & echo $!")
    p.communicate(timeout=60)
    equal(p.returncode, 0, "exit status")
    until(lambda: not alive(children[0]), "the end of the child")


def run_ends_when_its_output_has_no_reader():
    p, pids = started(2, "echo $$; sleep 0.2; while :; do echo y; done")
    p.stdout.close()
    p.wait(timeout=60)
    equal(p.returncode, 128 + signal.SIGPIPE, "exit status")
    true(not any(alive(pid) for pid in pids), "a worker is left")
    p.stderr.close()


def with_stdout(target, script):
    """A run by a shell that does with its stdout what `target` says."""
    return run("sh", "-c", f'exec "$0" run -n 2 -- sh -c "$1" {target}', TENREC, script)


def run_says_why_when_its_output_is_not_writable():
    for target, why in (("> /dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
        got = with_stdout(target, "echo x; exec sleep 300")
        equal(got.returncode, 1, "exit status")
        equal(one_line(got.stderr),
              f"tenrec run: cannot write to stdout: {why}; terminating the workers\n")


def run_needs_no_standard_files():
    got = with_stdout("<&- >&- 2>&-", "true")
    equal((got.returncode, got.stdout, got.stderr), (0, "", ""))


def unread(pipe):
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def run_can_be_ended_when_its_reader_hangs():
    p, pids = started(1, "echo $$; while :; do echo y; done", "--grace", "100ms")
    until(lambda: unread(p.stdout) > 60000, "a full pipe")
    p.send_signal(signal.SIGTERM)
    until(lambda: not alive(pids[0]), "the end of the worker")
    p.wait(timeout=60)
    true(p.returncode != 0, "exit status is 0")
    p.communicate()


def run_gives_workers_no_input():
    got = workers(1, "cat; echo end", input="something")
    equal(got.stdout, "[0] end\n")


def run_says_when_the_program_cannot_be_started():
    with tempfile.NamedTemporaryFile() as no_program:
        for program, status in (("no-such-program", 127), (no_program.name, 126)):
            got = run(TENREC, "run", "-n", 2, "--", program)
            equal(got.returncode, status, "exit status")
            contains(one_line(got.stderr), f"cannot start '{program}'")


def on_a_terminal(script, n):
    """What a run of n workers shows on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    p = subprocess.Popen([TENREC, "run", "-n", str(n), "sh", "-c", script], stdout=theirs,
                         stderr=theirs, env=environment())
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # EIO: the other end is closed
        pass
    os.close(ours)
    equal(p.wait(timeout=60), 0, "exit status")
    return shown.decode()


def run_gives_its_terminal_to_rank_0():
    shown = on_a_terminal("if test -t 1; then printf 'yes '; stty size <&1; else echo no; fi", 2)
    contains(shown, "[0] yes 24 76\r\n")
    contains(shown, "[1] no\r\n")


def run_shows_a_moving_line_on_a_terminal():
    shown = on_a_terminal("if [ $RANK = 0 ]; then printf '\\rstep 1'; sleep 4; "
                          "printf '\\rstep 2\\nend\\n'; else sleep 2; echo other; fi", 2)
    contains(shown, "[0] step 1\r\x1b[K[1] other\r\n[0] step 1\r\x1b[K[0] step 2\r\n[0] end\r\n")


def run_takes_options_of_the_program_for_its_own():
    got = run(TENREC, "run", "-n", "1", "printf", "-n%s", "-x")
    equal(got.stdout, "[0] -n-x\n")


def run_refuses_an_invalid_command_line():
    for args, part in ((["-n", "0", "true"], "'0'"), (["-n", "x", "true"], "'x'"),
                       (["-n", "99999", "true"], "32768"), (["-n"], "requires a value"),
                       (["true"], "-n N"), (["-n", "2"], "program"), (["--foo"], "'--foo'"),
                       (["-x"], "'-x'"), (["-n", "1", "--grace", "3", "true"], "duration"),
                       (["--help=x"], "takes no value")):
        got = run(TENREC, "run", *args)
        equal((got.returncode, got.stdout), (2, ""))
        contains(one_line(got.stderr), part)
        contains(got.stderr, "tenrec help run")


main(globals(), "run_")
