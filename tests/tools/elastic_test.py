# SPDX-License-Identifier: Apache-2.0
"""elastic_test.py TENREC - the contract of `tenrec run --elastic`."""
import os
import re
import signal
import sys
import tempfile

from cases import (alive, contains, environment, equal, main, one_line, run, start, true, until)

TENREC = os.path.abspath(sys.argv[1])


def elastic(sizes, script, *options, **more):
    return run(TENREC, "run", "--elastic", sizes, *options, "--", "sh", "-c", script, **more)


def lines_of(life, text):
    """What a slot's life wrote: "2.0"."""
    return [line.split("] ", 1)[1] for line in text.splitlines() if line.startswith(f"[{life}] ")]


def told(text):
    """What the command itself says, without its name."""
    return [line.split(": ", 1)[1] for line in text.splitlines() if line.startswith("tenrec run: ")]


def started(sizes, script, *options):
    """A run whose workers have each written a number first, and these numbers by slot."""
    p = start(TENREC, "run", "--elastic", sizes, *options, "--", "sh", "-c", script)
    n = int(options[options.index("-n") + 1]) if "-n" in options else int(sizes.split(":")[1])
    return p, read_pids(p, n)


def read_pids(p, n):
    pids = {}
    for _ in range(n):
        life, pid = re.match(r"\[([\d.]+)\] (\d+)$", p.stdout.readline()).groups()
        pids[life] = int(pid)
    return pids


def elastic_sets_no_world_size():
    env = environment(WORLD_SIZE="9", TENREC_WORLD_SIZE="9", TENREC_RANK="7", RANK="5")
    got = elastic("1:2", "echo ${WORLD_SIZE-none} ${TENREC_WORLD_SIZE-none} ${TENREC_RANK-none} $RANK "
                         "$LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $TORCHELASTIC_USE_AGENT_STORE "
                         "$TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS $TENREC_RUN_ID "
                         "$TENREC_MIN_WORKERS $TENREC_MAX_WORKERS", "--restarts", "5", env=env)
    equal((got.returncode, got.stderr), (0, ""))
    for slot in range(2):
        equal(lines_of(f"{slot}.0", got.stdout),
              [f"none none none {slot} {slot} 2 127.0.0.1 True 0 5 elastic 1 2"])


def elastic_starts_a_failed_worker_again_in_its_slot():
    got = elastic("1:2", "echo $RANK $TORCHELASTIC_RESTART_COUNT; "
                         "[ $RANK = 0 ] || [ $TORCHELASTIC_RESTART_COUNT = 2 ] || exit 3")
    equal(got.returncode, 0, "exit status")
    for life in range(3):
        equal(lines_of(f"1.{life}", got.stdout), [f"1 {life}"])
    equal(lines_of("0.1", got.stdout), [], "life 1 of slot 0")
    lines = told(got.stderr)
    contains(lines[0], "slot 1 failed: exit status 3; restart 1 of 3 in 0.1 s")
    contains(lines[1], "slot 1 failed: exit status 3; restart 2 of 3 in 0.2 s")
    equal(lines[2:], ["2 of 2 slots succeeded; 2 restarts"])


def elastic_starts_a_worker_again_that_a_signal_killed():
    p, pids = started("2:2", "echo $$; while [ $TORCHELASTIC_RESTART_COUNT = 0 ]; do sleep 0.05; done")
    os.kill(pids["1.0"], signal.SIGSEGV)
    equal(list(read_pids(p, 1)), ["1.1"])
    true(alive(pids["0.0"]), "the other did not go on")
    os.kill(pids["0.0"], signal.SIGKILL)
    _, errors = p.communicate(timeout=60)
    equal(p.returncode, 0, "exit status")
    contains(errors, "slot 1 failed: killed by SIGSEGV; restart 1 of 3")
    contains(errors, "slot 0 failed: killed by SIGKILL; restart 1 of 3")


def elastic_keeps_the_output_of_each_life_apart():
    got = elastic("1:1", "echo out; echo err >&2; printf last; exit $((1 - TORCHELASTIC_RESTART_COUNT))")
    equal(got.stdout, "[0.0] out\n[0.0] last\n[0.1] out\n[0.1] last\n")
    equal([lines_of(f"0.{life}", got.stderr) for life in (0, 1)], [["err"], ["err"]])


def elastic_does_not_restart_workers_that_exited_with_0():
    got = elastic("2:3", "echo x; exit 0")
    equal((got.returncode, sorted(got.stdout.splitlines()), got.stderr),
          (0, ["[0.0] x", "[1.0] x", "[2.0] x"], ""))


def elastic_goes_on_while_enough_are_left():
    got = elastic("2:3", "[ $RANK != 1 ] || exit 4; read x; echo end", "--restarts", "1")
    equal(got.returncode, 0, "exit status")
    equal([lines_of(f"{slot}.0", got.stdout) for slot in (0, 2)], [["end"], ["end"]])
    contains(got.stderr, "slot 1 failed: exit status 4; no restarts left; still running: ")
    contains(told(got.stderr)[-1], "2 of 3 slots succeeded; 1 restart")


def elastic_ends_when_too_few_are_left():
    p, pids = started("2:2", "trap 'exit 6' USR1; echo $$; while :; do sleep 0.05; done",
                      "--restarts", "0")
    os.kill(pids["1.0"], signal.SIGUSR1)
    _, errors = p.communicate(timeout=60)
    equal(p.returncode, 6, "exit status")
    contains(errors, "slot 1 failed: exit status 6; no restarts left, and fewer than 2 slots remain")
    true(not any(alive(pid) for pid in pids.values()), "a worker is left")


def elastic_waits_longer_before_each_restart():
    got = elastic("1:1", "exit 1", "--restarts", "3")
    equal(got.returncode, 1, "exit status")
    equal(re.findall(r"in ([\d.]+) s", got.stderr), ["0.1", "0.2", "0.4"])


def elastic_forwards_signals_and_restarts_no_worker():
    p, _ = started("1:3", "trap 'exit 5' TERM; echo $$; while :; do sleep 0.05; done")
    p.send_signal(signal.SIGTERM)
    out, errors = p.communicate(timeout=60)
    equal((p.returncode, out), (5, ""), "status and output")
    true("restart 1" not in errors, errors)


def elastic_can_be_ended_between_two_lives():
    p = start(TENREC, "run", "--elastic", "1:1", "--restarts", "99", "sh", "-c", "exit 1")
    while "in 3.2 s" not in p.stderr.readline():
        pass
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)
    equal(p.returncode, 128 + signal.SIGTERM, "exit status")


def elastic_adds_a_slot_when_told_to():
    p, pids = started("1:3", "echo $$; while :; do sleep 0.05; done", "-n", "2")
    equal(sorted(pids), ["0.0", "1.0"])
    p.send_signal(signal.SIGUSR1)
    equal(list(read_pids(p, 1)), ["2.0"])
    p.send_signal(signal.SIGUSR1)
    contains(p.stderr.readline(), "SIGUSR1: all 3 slots of --elastic exist already")
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)


def elastic_joins_a_store_that_is_there():
    env = environment(RANK="3", WORLD_SIZE="4", TENREC_RUN_ID="job7", TENREC_SECURITY__MODE="none")
    for url in ("tcp://10.0.0.1:29500", "redis://10.0.0.1/x"):
        got = elastic("1:2", "echo ${RANK-none} ${WORLD_SIZE-none} $LOCAL_RANK $TENREC_INIT_METHOD "
                             "$TENREC_RUN_ID", "--join", url, "-n", "1", "--insecure", env=env)
        equal((got.returncode, got.stdout), (0, f"[0.0] none none 0 {url} job7\n"))


def elastic_serves_the_store_at_the_address_of_the_option():
    for at, shown, address in (("127.0.0.2", "127.0.0.2", "127.0.0.2"), ("::1", "[::1]", "::1"),
                               ("[::1]:0", "[::1]", "::1")):
        got = elastic("1:1", "echo $MASTER_ADDR", "--serve", at, "--verbose")
        equal((got.returncode, got.stdout), (0, f"[0.0] {address}\n"))
        contains(got.stderr, f"store tcp://{shown}:")
    got = elastic("1:1", "echo never", "--serve", "192.0.2.77", "--insecure",
                  env=environment(TENREC_SECURITY__MODE="none"))
    equal((got.returncode, got.stdout), (1, ""))
    contains(one_line(got.stderr), "cannot serve the store")


def elastic_leaves_no_worker_behind():
    with tempfile.TemporaryDirectory() as folder:
        p, pids = started("1:2", f"echo $$ >> {folder}/pids; echo $$; while :; do sleep 0.05; done")
        os.kill(pids["0.0"], signal.SIGKILL)
        read_pids(p, 1)
        p.kill()
        p.communicate(timeout=60)
        with open(f"{folder}/pids", encoding="ascii") as f:
            all_pids = [int(line) for line in f]
    equal(len(all_pids), 3, "workers so far")
    until(lambda: not any(alive(pid) for pid in all_pids), "the end of all workers")


def elastic_says_when_the_program_cannot_be_started():
    got = run(TENREC, "run", "--elastic", "1:2", "no-such-program")
    equal(got.returncode, 127, "exit status")
    contains(got.stderr, "cannot start 'no-such-program'")


def elastic_refuses_an_invalid_command_line():
    for args, part in ((["--elastic", "0:2"], "'0:2'"), (["--elastic", "3:2"], "'3:2'"),
                       (["--elastic", "x"], "'x'"), (["--elastic", "1:99999"], "32768"),
                       (["--elastic", "2:4", "-n", "5"], "-n is 5"),
                       (["--elastic", "2:4", "-n", "1"], "-n is 1"),
                       (["-n", "2", "--restarts", "1"], "--restarts requires --elastic"),
                       (["-n", "2", "--join", "tcp://a:1"], "--join requires --elastic"),
                       (["--elastic", "1:2", "--restarts", "-1"], "'-1'"),
                       (["--elastic", "1:2", "--keep-going"], "--keep-going exclude"),
                       (["--elastic", "1:2", "--trace", "x"], "--trace exclude"),
                       (["--elastic", "1:2", "--join", "tcp://a:1", "--serve", "a"], "--serve exclude"),
                       (["--elastic", "1:2", "--serve", "a:x"], "'a:x'")):
        got = run(TENREC, "run", *args, "true")
        equal((got.returncode, got.stdout), (2, ""))
        contains(one_line(got.stderr), part)


main(globals(), "elastic_")
