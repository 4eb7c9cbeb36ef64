# SPDX-License-Identifier: Apache-2.0
"""life_test.py WHY - the end of workers, of processes and of the interpreter; fork."""
import gc
import signal
import tempfile
import threading
import weakref

from cases import LIMIT_S, contains, equal, main, true
from workers import program, programs_end, refused, started, tenrec


def ended(text, *args, status=0):
    with tempfile.TemporaryDirectory() as folder:
        return programs_end(program(text, *args, folder=folder), status=status)[0]


def life_ends_with_a_function_that_never_returns():
    equal(ended("""
me = tenrec.init_rpc(overrides=overrides)
begun = threading.Event()
me.register("wait", lambda: (begun.set(), threading.Event().wait()))
f = me.call_async("worker0", "wait")
begun.wait()
print("here")
"""), "here\n")


def life_ends_with_calls_in_all_states():
    equal(ended("""
me = tenrec.init_rpc(overrides=overrides)
me.register("echo", lambda x: x)
me.register("spin", lambda: [None for _ in range(1000)] and 1)
kept = [me.call_async("worker0", "echo", tenrec.empty((1 << 16,))) for _ in range(50)]
kept += [me.remote("worker0", "echo", 1) for _ in range(50)]
threads = [threading.Thread(target=lambda: [me.call_async("worker0", "spin") for _ in range(10000)], daemon=True) for _ in range(2)]
for t in threads:
    t.start()
print("here")
"""), "here\n")


def life_ends_after_an_exception():
    with tempfile.TemporaryDirectory() as folder:
        p = program("tenrec.init_rpc(overrides=overrides)\nraise ValueError('on purpose')", folder=folder)
        _, err = p.communicate(timeout=LIMIT_S)
    equal(p.returncode, 1)
    contains(err, "on purpose")


def life_ends_with_the_globals_of_its_program():
    """Nothing of the package holds them: files are flushed, and __del__ runs."""
    with tempfile.TemporaryDirectory() as folder:
        equal(programs_end(program(f"""
class Last:
    def __del__(self, write=os.write):
        write(1, b"released\\n")

last = Last()
out = open("{folder}/out", "w")
@tenrec.register
def add(a, b):
    return a + b
out.write("42")
me = tenrec.init_rpc(overrides=overrides)
os.write(1, b"%d\\n" % me.call("worker0", "add", 40, 2))
""", folder=folder))[0], "42\nreleased\n")
        with open(f"{folder}/out", encoding="utf-8") as f:
            equal(f.read(), "42")


# What the main thread of rank 0 waits for; the other rank joins, and never does its part.
WAITS = {
    "barrier": "me.barrier()",
    "all_gather": "me.all_gather(1)",
    "shutdown": "tenrec.shutdown()",
    "local_value": "me.remote('worker0', 'wait').local_value()",
    "to_here": "me.remote('worker1', 'wait').to_here()",
    "call": "me.call('worker1', 'wait')",
    "weights": "me.weights('w', 'worker1').pull({'x': bytearray(1)})",
}


def interrupted(text, *args, **kw):
    """What a process prints on stderr that is interrupted once it has printed a line."""
    p = program(text, *args, **kw)
    try:
        equal(p.stdout.readline(), "here\n", "the line before the wait")
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=LIMIT_S / 2)  # the waits last LIMIT_S
    finally:
        p.kill()
    equal(p.returncode, -signal.SIGINT, err)
    return err


def life_ends_by_an_interrupt_in_each_wait():
    with tempfile.TemporaryDirectory() as folder:
        for wait in WAITS.values():
            there = tempfile.mkdtemp(dir=folder)
            head = "gate = threading.Event()\ntenrec.register('wait', lambda: gate.wait(float(sys.argv[1])))\nme = tenrec.init_rpc(overrides=overrides)\n"
            other = program(head + "gate.wait(float(sys.argv[1]))", LIMIT_S, rank=1, world=2, folder=there)
            try:
                err = interrupted(head + f"print('here', flush=True)\n{wait}", 1 if "local" in wait else LIMIT_S, rank=0, world=2, folder=there)
                contains(err, "KeyboardInterrupt")
            finally:
                other.kill()
                other.communicate()
        dynamic = "del overrides['worker.rank'], overrides['worker.world_size']\nme = tenrec.init_rpc(overrides=overrides)\n"
        for text, world in ("print('here', flush=True)\ntenrec.init_rpc(overrides=overrides)", 2), (dynamic + "print('here', flush=True)\nme.wait_members(3)", 1):
            contains(interrupted(text, rank=0, world=world, folder=tempfile.mkdtemp(dir=folder)), "KeyboardInterrupt")


def life_ends_while_weights_are_pulled():
    head = 'me = tenrec.init_rpc(overrides=overrides)\npull = me.weights("w", "worker0").pull_async({"x": bytearray(1)}, timeout=float("inf"))\n'
    equal(ended(head + 'print("here")'), "here\n")
    equal(ended(head + '''
tenrec.shutdown(graceful=False)
try:
    pull.wait()
except tenrec.Error as e:
    print(e.status in ("ECANCELED", "ESHUTDOWN"))
'''), "True\n")


def life_of_a_forked_child_ends_and_has_workers_of_its_own():
    equal(ended("""
me = tenrec.init_rpc(overrides=overrides)
me.register("echo", lambda x: x)
gate = threading.Event()
me.register("wait", gate.wait)
f, late, r = me.call_async("worker0", "echo", 1), me.call_async("worker0", "wait"), me.rref(3)
weights = me.weights("w", "worker0")
weights.publish(1, {"x": b"x"})
region = me.region(bytearray(b"1234"), "r")
child = os.fork()
if child == 0:
    for use in [lambda: me.call("worker0", "echo", 1), late.wait, r.to_here, weights.wait, region.revoke, me.shutdown]:
        try:
            use()
        except RuntimeError as e:
            print("parent process" in str(e), flush=True)
    own = tenrec.Worker("own", overrides=dict(overrides, init_method=overrides["init_method"] + "2"))
    own.register("pid", os.getpid)
    own.init_rpc()
    print(own.call("own", "pid") == os.getpid(), flush=True)
    own.shutdown()
    weights.close()
    region.drop()
    sys.exit(0)
print(os.waitpid(child, 0)[1], f.wait(), me.call("worker0", "echo", 2), weights.pull({"x": bytearray(1)}), me.read(region.ref, bytearray(4)))
gate.set()
late.wait()
tenrec.shutdown()
"""), "True\n" * 7 + "0 1 2 1 None\n")


FORKS = """
overrides["backends.tensorpipe.options.transports"] = sys.argv[1]
@tenrec.register
def fork(how):
    child = os.fork()
    if child == 0:
        if how == "raise":
            raise ValueError("in the child")
        if how == "exit":
            sys.exit(5)
        return "child"
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
tenrec.init_rpc(f"w{overrides['worker.rank']}", overrides=overrides)
if overrides["worker.rank"] == 0:
    print([tenrec.call("w1", "fork", how) for how in ["raise", "exit", "return"] * 3])
tenrec.shutdown()
"""


def parent_answers_when_its_function_forks(transports):
    with tempfile.TemporaryDirectory() as folder:
        caller, callee = (program(FORKS, transports, rank=i, world=2, folder=folder) for i in range(2))
        equal(programs_end(caller), [f"{[1, 5, 0] * 3}\n"])
        _, err = callee.communicate(timeout=LIMIT_S)
    equal(callee.returncode, 0, err)
    contains(err, "ValueError: in the child")
    contains(err, "a function has returned in a forked child")


def life_of_a_child_of_a_function_ends_over_rings():
    parent_answers_when_its_function_forks("[shm, uv]")


def life_of_a_child_of_a_function_ends_over_tcp():
    parent_answers_when_its_function_forks("[uv]")


def life_of_many_workers_one_after_the_other():
    with tempfile.TemporaryDirectory() as folder:
        for i in range(5):
            with tempfile.TemporaryDirectory(dir=folder):
                w = tenrec.Worker(overrides={"init_method": f"file://{folder}/{i}", "worker.world_size": 1, "worker.rank": 0})
                w.register("i", lambda i=i: i)
                w.init_rpc()
                equal(w.call("worker0", "i"), i)
                w.shutdown()
                equal((w.name, w.id), ("worker0", 0))
                contains(str(refused(tenrec.Error, w.shutdown)), "ESHUTDOWN")
                contains(str(refused(tenrec.Error, w.call, "worker0", "i")), "ESHUTDOWN")


def life_of_a_worker_that_is_forgotten_ends():
    class Owner:
        """Its worker and itself hold each other."""

        def __init__(self, folder):
            self.worker = tenrec.Worker(overrides={"init_method": f"file://{folder}/store", "worker.world_size": 1, "worker.rank": 0})
            self.worker.register("me", self.me)
            self.worker.init_rpc()

        def me(self):
            return id(self)
    with tempfile.TemporaryDirectory() as folder:
        owner = Owner(folder)
        equal(owner.worker.call("worker0", "me"), id(owner))
        gone = weakref.ref(owner.worker)
        del owner
        gc.collect()
        true(gone() is None, "the worker is freed")


def life_goes_on_when_init_rpc_fails():
    with tempfile.TemporaryDirectory() as folder:
        wrong = {"init_method": f"file://{folder}/store", "worker.world_size": 2, "worker.rank": 0, "worker.init_timeout": "0.2s"}
        refused(tenrec.Error, tenrec.init_rpc, overrides=wrong)
        contains(str(refused(RuntimeError, tenrec.get_worker)), "no worker yet")
        tenrec.register("one", lambda: 1)
        tenrec.init_rpc("w", overrides=dict(wrong, init_method=f"file://{folder}/other", **{"worker.world_size": 1}))
        contains(str(refused(RuntimeError, tenrec.init_rpc)), "a worker already")
        equal(tenrec.call("w", "one"), 1)
        equal(tenrec.remote("w", "one").to_here(), 1)
        tenrec.register("two", lambda: 2)
        equal(tenrec.call_async("w", "two").wait(), 2)
        equal(tenrec.rref(5).local_value(), 5)
        tenrec.shutdown()


def life_of_functions_that_call_back_while_their_worker_ends():
    leaves = threading.Event()
    with started() as (w0, w1):
        w0.register("echo", lambda x: x)

        def ask_back(n):
            leaves.wait(LIMIT_S)
            return w1.call("w0", "echo", n)
        w1.register(ask_back)
        f = w0.call_async("w1", "ask_back", 7)
        leaver = threading.Thread(target=w1.shutdown)
        leaver.start()
        leaves.set()
        equal(f.wait(), 7)
        w0.shutdown()
        leaver.join()


def life_reads_configurations_of_each_form():
    with tempfile.TemporaryDirectory() as folder:
        text = f'init_method: "file://{folder}/NAME"\nworker:\n  world_size: 1\n  rank: 0\n'
        path = f"{folder}/config.yaml"
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace("NAME", "path"))
        mapping = {"init_method": f"file://{folder}/mapping", "worker": {"world_size": 1, "rank": 0, "name": "mapped"}}
        for config, name in [(path, "worker0"), (text, "worker0"), (mapping, "mapped")]:
            w = tenrec.Worker(config=config)
            w.init_rpc()
            equal(w.name, name)
            w.shutdown()


if __name__ == "__main__":
    main(globals(), "life_", "python_life")
