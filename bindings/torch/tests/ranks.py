# SPDX-License-Identifier: Apache-2.0
"""ranks.py - the ranks of one case: forked, watched until a deadline, and asked
for their stacks when they miss it.

torch's own harness spawns a new interpreter for each rank (seconds of import)
and polls ten times a second; forking a process that has imported everything, and
waiting for the exits, makes hundreds of cases fast enough.
"""
import faulthandler
import glob
import inspect
import multiprocessing
import multiprocessing.connection
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import torch

SIGNAL = signal.SIGUSR1
LINE = 120  # of a stack
# Stacks of an idle thread of a pool.
BELOW = r"wait|poll|\?\?|clone|start_thread|fetch|round_of|std::"
AT_REST = (r"uv_run|loop_main|serve|watch_main|c10::ThreadPool::main_loop|torch::autograd::ReadyQueue::pop|"
           r"c10d::ProcessGroupGloo::runLoop|gloo::transport::tcp::Loop|torch::distributed::rpc::RpcAgent::retry")
IDLE = re.compile(rf"#0 .*(wait|poll).*\n(#.*({BELOW}).*\n?)*(#\d+ +(0x\w+ in )?({AT_REST})|$)")
AFTER_ERROR_S = 2  # for the other ranks, once a rank has failed
ANSWER_S = 5       # to print a stack


def answer_with_stacks():
    """Makes this process and its children print their Python stacks at SIGNAL."""
    faulthandler.register(SIGNAL, file=sys.stderr, all_threads=True, chain=False)


def keep_process_groups():
    """Keeps every process group of torch.distributed alive in this process and its children.

    torch 1.13: ~ProcessGroupGloo joins the group's threads. If DistributedDataParallel is the
    last holder, the destructor runs with the GIL held, which such a thread needs to release a
    tensor that is known to Python: a deadlock. A rank ends by os._exit, which runs no destructor.
    """
    from torch.distributed import distributed_c10d
    kept = []
    make = distributed_c10d._new_process_group_helper

    def make_and_keep(*args, **kwargs):
        kept.append(make(*args, **kwargs))
        return kept[-1]

    distributed_c10d._new_process_group_helper = make_and_keep


def keep_off_devices():
    """Makes torch say that it has no CUDA, in this process and its forks.

    torch's suites ask for the devices before each test, which fails in a fork of a process that has
    used them. The ranks are then no forks, but new interpreters.
    """
    torch.cuda.is_available = lambda: False


def has_signal(status, *sets):
    """Returns true if SIGNAL is in one of these sets of a /proc/.../status."""
    try:
        with open(status, encoding="ascii", errors="replace") as f:
            return any(int(line.split()[1], 16) >> (SIGNAL - 1) & 1
                       for line in f if line.startswith(sets))
    except (FileNotFoundError, ProcessLookupError):
        return False


def threads_without(pid):
    """The threads that block SIGNAL now, including a thread that runs its handler."""
    return {t for t in glob.glob(f"/proc/{pid}/task/*") if has_signal(f"{t}/status", "SigBlk:")}


def ask_for_stack(pid):
    """Returns when the stacks are printed: the signal was delivered, and its handler has returned."""
    always = threads_without(pid)
    try:
        os.kill(pid, SIGNAL)
    except ProcessLookupError:
        return
    until = time.monotonic() + ANSWER_S
    while (has_signal(f"/proc/{pid}/status", "SigPnd:", "ShdPnd:") or threads_without(pid) - always) \
            and time.monotonic() < until:
        time.sleep(0.01)  # poll interval


def print_stacks(pids):
    """Prints the stacks: those of Python's threads by Python, those of all threads by gdb if installed."""
    for pid in pids:
        print(f"---- process {pid}, its Python threads:", file=sys.stderr, flush=True)
        ask_for_stack(pid)
    gdb = shutil.which("gdb")
    for pid in pids if gdb else []:
        try:
            done = subprocess.run([gdb, "-q", "-nx", "-batch", "-p", str(pid), "-ex",
                                   "thread apply all backtrace -frame-info short-location 20"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=60, check=False)
        except subprocess.TimeoutExpired:
            continue
        print(f"---- process {pid}, threads that are not idle:", file=sys.stderr)
        for thread in re.split(r"\n(?=Thread )", done.stdout)[1:]:
            if not IDLE.search(thread):
                print("\n".join(x[:LINE] for x in thread.rstrip().splitlines()), file=sys.stderr)
    sys.stderr.flush()


class Ranks:
    """A mixin, before torch's SpawnHelper."""

    deadline_s = 120
    on_devices = False
    new_rank = None  # on devices: (function, args) that a rank calls with torch's arguments behind args

    def _spawn_processes(self):
        if not self.new_rank:
            self._start_processes(multiprocessing.get_context("fork").Process)
            return
        new, known = self.new_rank

        def process(target, name, args, **kwargs):  # torch's target is a method of a class made at run time
            del target
            return multiprocessing.get_context("spawn").Process(target=new, name=name, args=(*known, *args), **kwargs)
        self._start_processes(process)

    def _join_processes(self, fn):
        started = time.monotonic()
        until = started + self.deadline_s
        waiting = {p.sentinel: p for p in self.processes}
        failed = False
        while waiting and time.monotonic() < until:
            left = max(0, until - time.monotonic())
            for sentinel in multiprocessing.connection.wait(list(waiting), left):
                process = waiting.pop(sentinel)
                process.join()
                if process.exitcode == self.TEST_ERROR_EXIT_CODE and not failed:
                    failed = True
                    until = min(until, time.monotonic() + AFTER_ERROR_S)
        if waiting and not failed:
            print(f"---- deadline of {self.deadline_s} s", file=sys.stderr, flush=True)
            print_stacks([p.pid for p in waiting.values()])
        for process in waiting.values():
            process.kill()
        try:
            if waiting and not failed:
                ranks = [i for i, p in enumerate(self.processes) if p.sentinel in waiting]
                self.fail(f"ranks {ranks} did not end within {self.deadline_s} s")
            self._check_exits(fn, time.monotonic() - started)
        finally:
            for pipe in self.pid_to_pipe.values():
                pipe.close()
            try:
                os.unlink(self.file_name)
            except FileNotFoundError:
                pass

    def _check_exits(self, fn, took_s):
        """Fails unless the ranks of the test `fn` ended as they should."""
        check = self._check_return_codes
        if "fn" in inspect.signature(check).parameters:  # newer torches look up the test themselves
            check(fn, took_s)
        elif fn in self.skip_return_code_checks:
            self._check_no_test_errors(took_s)
        else:
            check(took_s)
