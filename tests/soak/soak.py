# SPDX-License-Identifier: Apache-2.0
"""soak.py ACTOR CONFIG [OPTIONS] - a group that changes all the time, and what must hold of it.

Workers join, leave, are killed and stopped, drawn from --seed, while all of them call each other
(actor.c): tensors whose numbers are checked, references, calls within calls, gathers, reads and writes
of regions that are revoked meanwhile, weights that slot 0 keeps. Slots 0 and 1 stay. After each --epoch
seconds of that all others leave, the two fall silent, and then

- every call of a worker that was not killed has ended, once, and in time;
- no call was executed twice, none that nobody made, and each that was answered was executed;
- no byte of a region changed after its revoke had returned, each write that was answered is whole,
  and each pull has one version of one publisher;
- no answer was wrong, and no error came that has no reason;
- no worker refers to any value, no region and no weights are left, and memory, descriptors and threads are
  what they were after the first epoch.

With --static the group has a fixed size: all slots join at once, workers are stopped, one that does
not stay is killed in each epoch, and once only the first two are left the group ends and meets again.
With --stranger a hostile process (stranger.py) attacks all ports all the while; in a dynamic group
no living worker may be expelled for that, which it would tell.

The last line is TAP's. A failure prints the seed; the ledgers and what the workers wrote stay.
"""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from ledger import Ledger
from people import Actor, Broken, SLOW, Store, Stranger

sys.dont_write_bytecode = True
ANCHORS = 2
LEAVES_NONE = ("agent.client_active_calls", "agent.server_active_calls", "region.num_regions", "region.num_transfers",
               "weights.num_leases", "weights.num_editions")
FAULTS = ("[{do: drop, on: [RET], probability: 0.01},"
          " {do: delay, on: [CALL, REMOTE_CALL, RREF_FORK_REQUEST], probability: 0.05, by: 50ms},"
          " {do: duplicate, on: [RET, RREF_ACK, RREF_USER_DELETE], probability: 0.02},"
          " {do: fail, on: [CALL], probability: 0.01},"
          " {do: duplicate, on: [BULK_READ, BULK_WRITE, BULK_DONE], probability: 0.03},"
          " {do: delay, on: [BULK_READ, BULK_WRITE, BULK_DONE], probability: 0.05, by: 100ms},"
          " {do: drop, on: [BULK_READ, BULK_WRITE, BULK_DONE], probability: 0.005},"
          " {do: drop, on: [RREF_USER_DELETE, RREF_ACK, RREF_CHILD_ACCEPT], probability: 0.02},"
          " {do: disconnect, on: [CALL], probability: 0.002}]")


def tell(text):
    print(f"# {text}", flush=True)


def options():
    p = argparse.ArgumentParser(prog="script/soak", description="Soaks a group that changes all the time.",
                                epilog="Exit status 0: all that must hold did.")
    p.add_argument("actor", help=argparse.SUPPRESS)
    p.add_argument("config", help=argparse.SUPPRESS)
    p.add_argument("--minutes", type=float, default=2, help="how long workers come and go (2)")
    p.add_argument("--epoch", type=float, default=30, help="seconds between two looks at what is left (30)")
    p.add_argument("--seed", type=int, help="of all that is drawn; by default a new one, which is told")
    p.add_argument("--workers", type=int, default=5, help="slots, of which two stay (5)")
    p.add_argument("--callers", type=int, default=2, help="threads in each that call (2)")
    p.add_argument("--pace", type=float, default=0.4, help="seconds between two changes, on average (0.4)")
    p.add_argument("--backend", default="tensorpipe", help="tensorpipe, or faulty: with faults injected")
    p.add_argument("--transports", help="such as uv, instead of the config's")
    p.add_argument("--static", action="store_true", help="a group of fixed size that meets again and again")
    p.add_argument("--large", type=int, default=0, metavar="MIB", help="some tensors have so many MiB (0: none)")
    p.add_argument("--stranger", action="store_true", help="with a hostile process at all ports")
    p.add_argument("--keep", action="store_true", help="keep the folder of the ledgers")
    o = p.parse_args()
    if o.seed is None:
        o.seed = random.SystemRandom().randrange(1 << 31)
    if o.workers < ANCHORS + 1 or o.workers > 64:
        p.error("--workers: expected 3 to 64")
    return o


class Soak:
    def __init__(self, o):
        self.o, self.rng = o, random.Random(o.seed)
        self.folder = tempfile.mkdtemp(prefix="tenrec-soak-")
        self.ledger = Ledger(self.folder, faulty=o.backend == "faulty")
        self.store = Store(o.actor, self.folder)
        self.actors, self.lives = {}, {}
        self.count = {what: 0 for what in ("joins", "leaves", "kills", "stops", "gathers")}
        self.rounds, self.baseline, self.wrong = 0, None, []
        self.stranger = Stranger(self.folder, o.seed) if o.stranger else None

    def environment(self, slot):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith("TENREC_") or k in ("TENREC_PLUGIN_PATH", "TENREC_DLCLOSE", "TENREC_TEST_SLOW")
               or k.startswith(("TENREC_SECRET_FILE", "TENREC_SECURITY__"))}
        for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK"):
            env.pop(name, None)
        env.update(RANK=str(slot), MASTER_ADDR="127.0.0.1", MASTER_PORT=self.store.port,
                   TORCHELASTIC_USE_AGENT_STORE="True", TENREC_RUN_ID="soak",
                   TENREC_CONFIG=f"{self.o.config}/default.yaml", TENREC_BACKEND=self.o.backend,
                   TENREC_WORKER__HEARTBEAT="500ms", TENREC_WORKER__HEARTBEAT_MISSES=str(int(10 * SLOW)))
        if self.o.static:
            env.update(WORLD_SIZE=str(self.o.workers), LOCAL_RANK=str(slot))
        if self.o.transports:
            env["TENREC_TRANSPORTS"] = self.o.transports
        if self.o.backend == "faulty":
            # A control message that is lost is sent again when its answer has not come for so long.
            env.update(TENREC_WORKER__RPC_TIMEOUT="2s", TENREC_WORKER__RREF_RETRY_GAP="200ms",
                       TENREC_BACKENDS__FAULTY__MESSAGES_TO_FAIL="[]",
                       TENREC_BACKENDS__FAULTY__NUM_FAIL_SENDS="0",
                       TENREC_BACKENDS__FAULTY__RULES=FAULTS,
                       TENREC_BACKENDS__FAULTY__SEED=str(self.o.seed))
        return env

    # ---- what is done to them ----------------------------------------------------------

    def join(self, slot):
        life = self.lives.get(slot, -1) + 1
        self.lives[slot] = life
        self.actors[slot] = Actor(self.o, self.folder, slot, life, self.environment(slot))
        self.count["joins"] += 1

    def kill(self, slot):
        self.actors.pop(slot).kill()
        self.count["kills"] += 1

    def leave(self, slot):
        self.actors[slot].leave()
        self.count["leaves"] += 1

    def stop(self, slot, seconds):
        self.actors[slot].stop(seconds)
        self.count["stops"] += 1

    def change_static(self):
        """A stop of any worker; each slot that does not stay is killed once in a life of the group."""
        for_s = self.rng.uniform(0.05, 0.6)
        actor = self.actors.get(self.rng.randrange(self.o.workers))
        if actor and actor.is_free():
            self.stop(actor.slot, for_s)

    def kill_one(self):
        """Returns false when none is left that may die."""
        slots = [slot for slot, actor in self.actors.items() if slot >= ANCHORS and actor.is_free()]
        if slots:
            self.kill(self.rng.choice(slots))
        return bool(slots)

    def change(self):
        """One thing that happens."""
        if self.o.static:
            self.change_static()
            return
        slot = self.rng.randrange(ANCHORS, self.o.workers)
        what = self.rng.random()
        for_s = self.rng.uniform(0.05, 0.6)
        actor = self.actors.get(slot)
        if not actor:
            self.join(slot)
        elif not actor.is_free():
            pass  # it comes, goes, or is stopped just now
        elif what < 0.4:
            self.kill(slot)
        elif what < 0.75:
            self.leave(slot)
        else:
            self.stop(slot, for_s)

    def look(self):
        """Takes what they say; those that have left go."""
        now = time.monotonic()
        for slot, actor in list(self.actors.items()):
            actor.look(now)
            if actor.has_left:
                del self.actors[slot]
                actor.forget()
        if self.stranger:
            self.stranger.look([a for a in self.actors.values() if not a.is_leaving], self.store)

    def gather(self):
        """The two that stay, so that all of them must work."""
        if all(self.actors[slot].is_free() for slot in range(ANCHORS)):
            self.rounds += 1
            names = " ".join(f"worker{slot}" for slot in range(ANCHORS))
            for slot in range(ANCHORS):
                self.actors[slot].ask(f"gather {self.rounds} {names}", "gather")
            self.count["gathers"] += 1

    def churn(self, seconds):
        until = time.monotonic() + seconds
        due = time.monotonic()
        while time.monotonic() < until:
            if time.monotonic() >= due:
                self.change()
                if self.rng.random() < 0.3:
                    self.gather()
                due += min(self.rng.expovariate(1 / self.o.pace), 3)
            self.look()
            time_left = max(min(due, until) - time.monotonic(), 0)
            Actor.wait(self.actors.values(), min(time_left, 0.1))

    # ---- what must hold -----------------------------------------------------------------

    def until(self, condition, limit_s, what):
        deadline = time.monotonic() + limit_s * SLOW
        while not condition():
            if time.monotonic() > deadline:
                raise Broken(f"{what() if callable(what) else what} within {limit_s * SLOW:.0f} s")
            self.look()
            Actor.wait(self.actors.values(), 0.05)

    def calm(self):
        """All but the first two leave, and these fall silent."""
        self.until(lambda: all(a.is_free() or a.is_leaving for a in self.actors.values()), 30,
                   lambda: f"not all came to rest: {[str(a) for a in self.actors.values() if not a.is_free()]}")
        if self.o.static:
            self.silence()
            return
        for slot in list(self.actors):
            if slot >= ANCHORS and not self.actors[slot].is_leaving:
                self.leave(slot)
        self.until(lambda: len(self.actors) == ANCHORS, 30,
                   lambda: f"did not leave: {[str(a) for s, a in self.actors.items() if s >= ANCHORS]}")
        self.silence()

    def silence(self):
        for actor in self.actors.values():
            actor.ask("pause", "pause")
        self.until(lambda: all(a.is_free() for a in self.actors.values()), 30, "calls of those that stay did not end")

    def stats(self):
        for slot in range(ANCHORS):
            self.actors[slot].ask("stats", "stats")
        self.until(lambda: all(a.is_free() for a in self.actors.values()), 20, "no stats")
        return [self.actors[slot].stats for slot in range(ANCHORS)]

    def excess(self, stats):
        """What there is too much of, in words."""
        for slot, got in enumerate(stats):
            for key, value in got.items():
                if key.startswith("rref.num_") and key != "rref.num_tombstones" and value:
                    yield f"worker{slot} has {key} = {value}"
                if key in LEAVES_NONE and value:
                    yield f"worker{slot} has {key} = {value}"
            if not self.o.static and got.get("group.size", ANCHORS) != ANCHORS:
                yield f"worker{slot} sees a group of {got['group.size']}"
            if not self.baseline:
                continue
            first = self.baseline[slot]
            limits = [("fds", 0), ("threads", 0)]
            if got["heap_kb"]:  # sanitizers have a heap of their own, and keep what is freed
                # A member remembers each life that it saw join, in some 500 bytes, and each of the last
                # references that were deleted, up to a limit, in 128.
                deleted = (got["rref.num_tombstones"] - first["rref.num_tombstones"]) // 8
                limits += [("heap_kb", 1024 + self.count["joins"] + max(deleted, 0)), ("rss_kb", 24 * 1024)]
            for key, more in limits:
                if got[key] > first[key] + more:
                    yield f"worker{slot} has {key} = {got[key]}, {first[key]} after the first epoch"

    def settle(self):
        """Control messages, pool threads and memory that is kept take some seconds to go."""
        deadline = time.monotonic() + 25 * SLOW
        quiet_since = time.monotonic()
        best = None
        while True:
            stats = self.stats()
            left = list(self.excess(stats))
            key = [(s["fds"], s["threads"], s["heap_kb"]) for s in stats]
            if best is None or any(a < b for now, then in zip(key, best) for a, b in zip(now, then)):
                best, quiet_since = key, time.monotonic()
            # Before there is anything to compare with: until it gets no less for a while.
            if not left and (self.baseline or time.monotonic() - quiet_since > 4):
                return stats
            if time.monotonic() > deadline:
                raise Broken("is left: " + "; ".join(left) + f"; all: {stats}" if left else "memory does not come to rest")
            Actor.wait(self.actors.values(), 0.2)

    def epoch(self, seconds):
        self.churn(seconds)
        self.calm()
        if self.stranger:
            self.stranger.rest()
        stats = self.settle()
        if self.stranger:
            self.stranger.go_on()
        self.ledger.read()
        self.wrong += self.ledger.judge(Actor.killed, Actor.stops)
        if self.wrong:
            raise Broken("the ledgers disagree")
        self.baseline = self.baseline or stats
        return stats

    def run(self):
        o = self.o
        tell(f"seed {o.seed}, {o.minutes:g} minutes, {o.workers} workers, backend {o.backend}")
        self.begin()
        end = time.monotonic() + o.minutes * 60
        first = True
        while first or time.monotonic() < end:
            left = end - time.monotonic()
            stats = self.epoch(min(o.epoch, max(left, 2) if not first else max(left / 3, 2)))
            tell(f"{self.ledger.summary()}; " + ", ".join(f"{n} {what}" for what, n in self.count.items()) +
                 "; " + ", ".join(f"{s['heap_kb']} kB ({s['rref.num_tombstones']} tombstones), {s['fds']} fds, {s['threads']} threads" for s in stats))
            first = False
            if o.static and not self.kill_one():
                self.end()
                self.begin()
            else:
                for actor in self.actors.values():
                    actor.ask("resume", "resume")
        self.calm()
        self.end()
        tell(self.ledger.all_kinds())
        if self.stranger:
            tell(f"the stranger: {self.stranger.close()}")
        self.store.close()

    def begin(self):
        """The first two join; a static group as a whole."""
        self.baseline = None
        for slot in range(self.o.workers if self.o.static else ANCHORS):
            self.join(slot)
        self.until(lambda: all(a.is_free() for a in self.actors.values()), 30, "not all of the first joined")

    def end(self):
        """All leave: together from a static group, of which some may be dead."""
        if self.o.static:
            for slot, actor in list(self.actors.items()):
                actor.may_miss_others = len(self.actors) < self.o.workers
                self.leave(slot)
            self.until(lambda: not self.actors, 30, "not all left")
            return
        for slot in range(ANCHORS):
            self.leave(slot)
            self.until(lambda: slot not in self.actors, 30, f"worker{slot} did not leave")

    def close(self):
        for actor in self.actors.values():
            actor.kill()
        if self.stranger:
            self.stranger.close()
        self.store.close()


def main():
    o = options()
    soak = Soak(o)
    failed = None
    print("1..1")
    try:
        soak.run()
    except (Broken, KeyboardInterrupt) as e:
        failed = str(e) or type(e).__name__
    finally:
        soak.close()
    name = f"soak_{o.backend}" + "_static" * o.static + "_stranger" * o.stranger
    if not failed:
        if not o.keep:
            shutil.rmtree(soak.folder)
        print(f"ok 1 - {name}")
        return 0
    for line in [failed, *soak.wrong[:40], *Actor.last_words(soak.folder)]:
        tell(line)
    more = f" --large {o.large}" * bool(o.large) + " --static" * o.static + " --stranger" * o.stranger
    tell(f"again: script/soak --seed {o.seed} --minutes {o.minutes:g} --workers {o.workers} "
         f"--backend {o.backend}{more}; ledgers are in {soak.folder}")
    print(f"not ok 1 - {name}")
    return 1


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
sys.exit(main())
