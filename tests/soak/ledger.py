# SPDX-License-Identifier: Apache-2.0
"""ledger.py - reads what all workers of a soak noted (ledger.h), and compares it."""
import os
import re
import struct

from people import SLOW

RECORD = struct.Struct("=QQiIII")
START, END, EXEC, BAD, MISSING = 1, 2, 3, 4, 5
OK, EREMOTE = 0, -8
NESTED = (3, 5)
# What a call may fail with for the reasons that a soak gives.
REASONS = {-3: "ETIMEDOUT", -4: "ECANCELED", -7: "EAGAIN", -11: "ENOTFOUND", -20: "EPEER_UNKNOWN",
           -21: "EPEER_LOST", -22: "ECONNECT", -30: "ESHUTDOWN"}
INJECTED = {-6: "EINJECTED"}
LATE_S = 5 * SLOW  # what a call may take beyond its limit on a busy machine
KINDS = {0: "mix", 1: "flip", 2: "batch", 3: "pass", 4: "ref", 5: "lend", 6: "write", 7: "read", 8: "finish",
         9: "publish", 10: "pull", 11: "report", 12: "withdraw", 13: "wait", 100: "inner", 101: "offer",
         102: "revoke", 103: "then"}
CALLED = (0, 1, 2, 3, 5, 6, 8, 100, 103)  # those that have been executed when they are answered
# What more they may fail with: regions are revoked, another publisher has the version, readers go before it is reported.
ALSO = {6: {-16: "ESTALE"}, 7: {-16: "ESTALE"}, 103: {-16: "ESTALE"}, 9: {-12: "EEXIST"}, 10: {-16: "ESTALE"}}
BADS = {10: "wrote bytes that are not its own", 11: "has bytes that changed after the revoke", 12: "was followed by `then` before its bytes were there",
        13: "timed out and named no worker", 14: "was not quiet long after its revoke", 15: "read other bytes", 16: "did not free its buffer",
        17: "changed a buffer that was free", 18: "mixed versions", 19: "could not be withdrawn"}


class Call:
    __slots__ = ("kind", "begun", "ms", "ends", "status", "ended", "execs", "bad", "missing")

    def __init__(self):
        self.kind = self.begun = self.ms = self.status = self.ended = None
        self.bad = None
        self.ends = self.execs = self.missing = 0


def who(call_id):
    return call_id >> 56, call_id >> 40 & 0xFFFF


def called(call_id):
    slot, life = who(call_id)
    return f"call {call_id & 0xFFFFFFFFFF} of worker{slot} in life {life}"


class Ledger:
    def __init__(self, folder, faulty):
        self.folder = folder
        self.reasons = {**REASONS, **(INJECTED if faulty else {})}
        self.read_so_far = {}  # by file
        self.calls, self.before = {}, {}
        self.made = self.well = 0
        self.failed, self.kinds = {}, {}

    def read(self):
        """What is new. Calls of the last time are still known, for what comes late."""
        self.before, self.calls = self.calls, {}
        for name in sorted(os.listdir(self.folder)):
            if not re.fullmatch(r"\d+\.\d+\.ledger", name):
                continue
            with open(f"{self.folder}/{name}", "rb") as f:
                f.seek(self.read_so_far.get(name, 0))
                data = f.read()
            data = data[:len(data) // RECORD.size * RECORD.size]  # SIGKILL may cut the last one
            self.read_so_far[name] = self.read_so_far.get(name, 0) + len(data)
            for record in RECORD.iter_unpack(data):
                self.take(*record)

    def take(self, call_id, at_us, status, what, ms, _):
        call = self.before.get(call_id) or self.calls.setdefault(call_id, Call())
        if what == START:
            call.kind, call.begun, call.ms = status, at_us / 1e6, ms
        elif what == END:
            call.ends += 1
            call.status, call.ended = status, at_us / 1e6
        elif what == EXEC:
            call.execs += 1
        elif what == MISSING:
            call.missing += 1
        else:
            call.bad = BADS.get(status, "had other numbers than were sent")

    def judge(self, killed, stops):
        """Everything that must not be, in words; and counts what there was."""
        wrong = []
        for call_id, call in {**self.before, **self.calls}.items():
            wrong += [f"{called(call_id)} ({KINDS.get(call.kind)}): {text}"
                      for text in self.faults(call_id, call, killed, stops)]
        for call in self.calls.values():
            self.made += 1
            self.well += call.status == OK
            made, well = self.kinds.get(call.kind, (0, 0))
            self.kinds[call.kind] = made + 1, well + (call.status == OK)
            if call.status not in (OK, None):
                name = self.reasons.get(call.status) or ALSO.get(call.kind, {}).get(call.status, "EREMOTE")
                self.failed[name] = self.failed.get(name, 0) + 1
        return wrong

    def faults(self, call_id, call, killed, stops):
        if call.kind is None:
            yield "nobody made it, but it ran or ended"
            return
        if call.execs > 1:
            yield f"was executed {call.execs} times"
        if call.bad:
            yield call.bad
        if call.ends > 1:
            yield f"ended {call.ends} times"
        if call.ends == 0:
            if who(call_id) not in killed:
                yield "never ended, though its caller was not killed"
            return
        # What makes a reference is done where it ends up; its maker only hears of a start.
        if call.status == OK and call.execs == 0 and call.kind in CALLED:
            yield "was answered and never executed"
        if call.status == OK and call.missing:
            yield "was answered, and bytes that it wrote are not there"
        if call.status == EREMOTE and call.kind in NESTED:
            pass  # what they called in turn failed
        elif call.status != OK and call.status not in self.reasons and call.status not in ALSO.get(call.kind, ()):
            yield f"failed with {call.status}, for which there is no reason"
        slot, _ = who(call_id)
        halted = sum(max(min(to, call.ended) - max(begin, call.begun), 0)
                     for s, begin, to in stops if s == slot)
        took = call.ended - call.begun - halted
        if took > call.ms / 1e3 + LATE_S:
            yield f"took {took:.2f} s, its limit was {call.ms / 1e3:g} s"

    def all_kinds(self):
        return "; ".join(f"{made} {KINDS[kind]}, {well} well" for kind, (made, well) in sorted(self.kinds.items()))

    def summary(self):
        failed = ", ".join(f"{n} {name}" for name, n in sorted(self.failed.items()))
        return f"{self.made} calls, {self.well} well" + (f" ({failed})" if failed else "")
