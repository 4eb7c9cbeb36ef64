# SPDX-License-Identifier: Apache-2.0
"""group_test.py WHY - members, barriers, and groups that change."""
import tempfile
import threading

from cases import LIMIT_S, contains, equal, main, true, until
from workers import at_once, program, refused, started, tenrec


def group_members_are_known_by_name():
    with started(3) as (w0, w1, w2):
        equal(w1.members(), [tenrec.Member(0, "w0"), tenrec.Member(1, "w1"), tenrec.Member(2, "w2")])
        equal((w1.name, w1.id, w0.member("w2")), ("w1", 1, tenrec.Member(2, "w2")))
        equal(w2.view(), tenrec.View(1, w1.members()))
        contains(refused(tenrec.NotFoundError, w0.member, "w3").text, "w3")


def group_meets_in_a_barrier_and_gathers():
    with started(3) as workers:
        w0, w1, _ = workers
        at_once(*(w.barrier for w in workers))
        gathered = at_once(*(lambda w=w: w.all_gather({"id": w.id}) for w in workers))
        equal(gathered, [{f"w{i}": {"id": i} for i in range(3)}] * 3)
        equal(at_once(lambda: w0.all_gather(1, ["w0", "w1"]), lambda: w1.all_gather(2, ("w0", "w1"))), [{"w0": 1, "w1": 2}] * 2)
        contains(refused(TimeoutError, w0.barrier, timeout=0.05).text, "w1")
        refused(tenrec.NotFoundError, w0.barrier, ["w0", "w9"])
        refused(TypeError, w0.barrier, [0])


def joining(folder, name):
    return tenrec.Worker(name, overrides={"init_method": f"file://{folder}/store", "worker.rpc_timeout": f"{LIMIT_S}s"})


def group_that_changes_tells_its_members():
    seen = []
    changed = threading.Condition()

    def note(*what):
        with changed:
            seen.append(what)
            changed.notify_all()
    with tempfile.TemporaryDirectory() as folder:
        a, b = joining(folder, "a"), joining(folder, "b")
        a.on_members(joined=lambda m, version: note("joined", m.name, version > 0), left=lambda m, why, _: note("left", m.name, why))
        a.init_rpc()
        b.init_rpc()
        a.wait_members(2)
        first = a.view()
        equal(sorted(m.name for m in first.members), ["a", "b"])
        b.shutdown()
        a.wait_version(first.version + 1)
        equal([m.name for m in a.members()], ["a"])
        until(lambda: len(seen) == 2, "both changes are told")
        equal(seen, [("joined", "b", True), ("left", "b", None)])
        contains(refused(TimeoutError, a.wait_members, 3, timeout=0.05).text, "a")
        a.shutdown()


def group_goes_on_when_a_callback_raises():
    def raises(*_):
        raise ValueError("on purpose")
    with tempfile.TemporaryDirectory() as folder:
        a, b = joining(folder, "a"), joining(folder, "b")
        a.on_members(joined=raises, left=raises)
        a.init_rpc()
        b.init_rpc()
        a.wait_members(2)
        b.shutdown()
        a.shutdown()


def group_member_that_dies_is_told():
    lost = []
    told = threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        w0 = tenrec.Worker("w0", overrides={"init_method": f"file://{folder}/store", "worker.world_size": 2, "worker.rank": 0})
        w0.on_peer_lost(lambda member, why: (lost.append((member, why.status)), told.set()))
        other = program('tenrec.register("f", os.getpid); tenrec.init_rpc("w1", overrides=overrides); threading.Event().wait()', rank=1, world=2,
                        folder=folder)
        w0.init_rpc()
        equal(w0.call("w1", "f"), other.pid)
        f = w0.call_async("w1", "f")
        f.wait()
        other.kill()
        other.wait()
        true(told.wait(LIMIT_S), "the loss is told")
        equal(lost[0], (tenrec.Member(1, "w1"), "EPEER_LOST"))
        error = refused(ConnectionError, w0.call, "w1", "f")
        true(error.status in ("EPEER_LOST", "ECONNECT"), str(error))
        w0.shutdown(graceful=False)
        other.communicate()


if __name__ == "__main__":
    main(globals(), "group_", "python_group")
