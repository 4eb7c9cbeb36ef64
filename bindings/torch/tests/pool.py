# SPDX-License-Identifier: Apache-2.0
"""pool.py - runs cases side by side, each in a process (and a session) of its own.

The caller has imported everything and has one thread: a case is a fork of the caller, so
that it starts at once and leaves nothing behind.
"""
import json
import os
import select
import signal
import sys
import time
import traceback
import unittest

import ranks

GRACE_S = 90  # beyond the deadline of the ranks: time to print stacks


class Running:
    def __init__(self, case, number, folder, deadline_s):
        self.case = case
        self.number = number  # of the attempt, from 1
        self.log = os.path.join(folder, f"{case.name.replace('/', '-')}.{number}.log")
        self.started = time.monotonic()
        self.until = self.started + deadline_s + GRACE_S
        self.pipe, write = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            run_case(case, self.log, write)
        os.close(write)

    def finish(self):
        """The result of the case: (how, text, seconds)."""
        # All ranks of the case are in its session; kill those that are left.
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        told = b""
        while part := os.read(self.pipe, 65536):
            told += part
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        took_s = time.monotonic() - self.started
        if not told:
            return "fail", f"ended without a result (status {status})", took_s
        how, text = json.loads(told)
        return how, text, took_s


def run_case(case, log, pipe):
    """In the child: runs one test method and reports the result. Does not return."""
    try:
        os.setsid()
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(fd, 1)
        os.dup2(fd, 2)
        os.close(fd)
        os.set_inheritable(pipe, False)
        ranks.answer_with_stacks()
        ranks.keep_process_groups()
        result = unittest.TestResult()
        case.make().run(result)
        bad = result.errors + result.failures
        if bad:
            told = "fail", bad[0][1]
        elif result.skipped:
            told = "skip", result.skipped[0][1]
        else:
            told = "ok", ""
    except BaseException:
        told = "fail", traceback.format_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(pipe, json.dumps(told).encode()[:60000])
    os._exit(0)


def run(cases, jobs, deadline_s, folder, attempts, say):
    """Runs all; `say(case, how, text, seconds, log, number)` after each last attempt.

    attempts(case) is the number of attempts until a case must pass."""
    waiting = [(case, 1) for case in reversed(cases)]
    running = {}
    poll = select.poll()
    while waiting or running:
        while waiting and len(running) < jobs:
            one = Running(*waiting.pop(), folder, deadline_s)
            running[one.pipe] = one
            poll.register(one.pipe, select.POLLIN | select.POLLHUP)
        until = min(one.until for one in running.values())
        ready = [fd for fd, _ in poll.poll(max(0, until - time.monotonic()) * 1000)]
        late = [fd for fd, one in running.items() if time.monotonic() > one.until]
        for fd in {*ready, *late}:
            one = running.pop(fd)
            poll.unregister(fd)
            how, text, took_s = one.finish()
            if how == "fail" and one.number < attempts(one.case):
                waiting.append((one.case, one.number + 1))
                continue
            say(one.case, how, text, took_s, one.log, one.number)
