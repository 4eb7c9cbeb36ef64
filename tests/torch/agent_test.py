# SPDX-License-Identifier: Apache-2.0
"""What the backend TENREC does beside what PyTorch's own suites ask: two or three
processes on this host, over each transport. Prints TAP; skips where it is not built."""
import sys

if sys.argv[1]:
    print(f"1..0 # SKIP {sys.argv[1]}")
    sys.exit(0)

from groups import LATE_READER, SERVED, main, over, run


def tensors_arrive_unchanged(config):
    run(2, """
init()
if rank == 0:
    some = [torch.rand(3, 4), torch.rand(3, 4).t(), torch.arange(10)[3:7], torch.tensor(5.),
            torch.rand(0, 3), torch.rand(1 << 20), torch.rand(4, 4, requires_grad=True),
            torch.ones(3, dtype=torch.bool), torch.ones(2, dtype=torch.bfloat16),
            torch.rand(1).expand(5), torch.rand(100000)[7:9], torch.rand(2, dtype=torch.complex64)]
    for t in some:
        back = rpc.rpc_sync("w1", same, args=(t,))
        assert torch.equal(back, t) and back.dtype == t.dtype, t
        assert back.stride() == t.stride() and back.requires_grad == t.requires_grad, t
    pair = rpc.rpc_sync("w1", same, args=(some,))
    assert all(torch.equal(a, b) for a, b in zip(pair, some))
rpc.shutdown()
""", config)


def unusual_tensors_arrive_as_pickled_by_torch(config):
    run(2, """
init()
if rank == 0:
    sparse = torch.eye(4).to_sparse()
    assert torch.equal(rpc.rpc_sync("w1", same, args=(sparse,)).to_dense(), sparse.to_dense())
    quantized = torch.quantize_per_tensor(torch.rand(4), 0.1, 10, torch.quint8)
    assert torch.equal(rpc.rpc_sync("w1", same, args=(quantized,)).dequantize(), quantized.dequantize())
    conj = torch.rand(3, dtype=torch.complex64).conj()
    assert torch.equal(rpc.rpc_sync("w1", same, args=([conj, torch.ones(2)],))[0], conj)
    for lazy in (conj, conj.imag, torch.rand(9000, dtype=torch.complex64)[3:5].conj()):
        assert torch.equal(rpc.rpc_sync("w1", same, args=(lazy,)), lazy)
    assert rpc.rpc_sync("w1", same, args=(torch._efficientzerotensor((3,)),)).tolist() == [0, 0, 0]
    deep = torch.rand([1] * 20)
    assert torch.equal(rpc.rpc_sync("w1", same, args=(deep,)), deep)
rpc.shutdown()
""", config)


def tensors_that_cannot_travel_are_refused_with_advice(config):
    run(2, """
def squeezed():
    return torch.eye(3).to_sparse_csr()
init()
if rank == 0:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    raises(RuntimeError, "^a nested tensor cannot be sent: send the list of its parts",
           lambda: rpc.rpc_sync("w1", same, args=(nested,)))
    raises(RuntimeError, "^a tensor of layout SparseCsc cannot be sent: send t.to_dense",
           lambda: rpc.rpc_sync("w1", same, args=(torch.eye(3).to_sparse_csc(),)))
    assert rpc.rpc_sync("w1", torch.sum, args=(torch.eye(3).to_sparse_csr(),)) == 3
    raises(RuntimeError, r"^Cannot access storage of SparseCsrTensorImpl[^\\n]*$", lambda: rpc.rpc_sync("w1", squeezed))
rpc.shutdown()
""", config)


# Tensors that are pickled: tensors whose storages are smaller than their sizes say.
def pickled_tensors_lie_in_the_bytes_that_arrived(config):
    run(2, """
init()
if rank == 0:
    quantized = torch.quantize_per_tensor(torch.rand(1000), 0.1, 10, torch.quint8)
    quantized.storage().resize_(10)
    rows = torch.quantize_per_channel(torch.rand(4, 3), torch.ones(4), torch.zeros(4).int(), 0,
                                      torch.quint8)
    rows.q_per_channel_scales().storage().resize_(1)
    floats = torch.quantize_per_channel(torch.rand(4, 3), torch.ones(4), torch.zeros(4), 0,
                                        torch.quint8)
    floats.q_per_channel_zero_points().storage().resize_(1)
    sparse = torch.eye(3).to_sparse()
    sparse._values().storage().resize_(1)
    for t, end, size in ((quantized, 1000, 10), (rows, 32, 8), (floats, 16, 4), (sparse, 12, 4)):
        raises(RuntimeError,  # torch 2 checks this too, before us
               f"ends at byte {end} of a storage of {size}|{end} bytes, but storage only has {size} bytes",
               lambda: rpc.rpc_sync("w1", same, args=(t,)))
rpc.shutdown()
""", config)


def sent_tensors_may_change_after_the_answer(config):
    run(2, """
init()
if rank == 0:
    t = torch.zeros(1 << 18)
    kept = [rpc.rpc_sync("w1", same, args=(t.fill_(i),)) for i in range(20)]
    assert [k[5].item() for k in kept] == list(range(20))
    kept[3].fill_(-1)
    assert [k[5].item() for k in kept][2:5] == [2, -1, 4]
rpc.shutdown()
""", config)


def nested_calls_end_with_one_thread(config):
    run(2, """
init(num_worker_threads=1)
if rank == 0:
    assert rpc.rpc_sync("w1", down, args=("w0", 8)) == 8
rpc.shutdown()
""", config)


def errors_reach_the_caller(config):
    run(2, """
init()
if rank == 0:
    raises(ValueError, "no luck", lambda: rpc.rpc_sync("w1", fail))
    raises(RuntimeError, "ran for more than set timeout .200 ms.",
           lambda: rpc.rpc_sync("w1", nap, args=(2.5,), timeout=0.2))
    raises(RuntimeError, "could not find destination .nobody.", lambda: rpc.rpc_sync("nobody", same, args=(1,)))
rpc.shutdown()
""", config)


def a_worker_calls_itself(config):
    run(1, """
init()
t = torch.rand(1000)
assert torch.equal(rpc.rpc_sync("w0", torch.add, args=(t, 1)), t + 1)
assert rpc.rpc_sync("w0", down, args=("w0", 3)) == 3
rpc.shutdown()
""", config)


def a_lost_worker_fails_calls(config):
    said = run(2, """
init()
if rank == 1:
    rpc.rpc_sync("w0", same, args=(1,))
    os._exit(0)
raises(RuntimeError, "w1", lambda: rpc.rpc_sync("w1", nap, args=(30,)))
print("noticed", flush=True)
rpc.shutdown(graceful=False)
os._exit(0)
""", config)
    assert "noticed" in said[0], said[0]


# The rank that dies waits until all others wait for it.
def a_shutdown_ends_when_a_member_dies(config):
    for dead in range(3):
        run(3, f"""
dead = {dead}
""" + """
def gathered():
    return [len(states.gathered_objects) for states in rpc.api._all_gather_sequence_id_to_states.values()]
init()
if rank == dead:
    wait_until(lambda: rpc.rpc_sync("w0", gathered) == [2] and (rank == 0 or tenrec_torch._gather._watches))
    os._exit(0)
raises(RuntimeError, f"^worker 'w{dead}' was lost while 'w.' waited for it in rpc.shutdown.., since .*w{dead}",
       rpc.shutdown)
""", config)


def a_shutdown_ends_when_a_member_is_dead_already(config):
    for dead in range(2):
        run(2, f"""
dead = {dead}
""" + """
init()
if rank == dead:
    os._exit(0)
raises(RuntimeError, f"w{dead}", rpc.shutdown)
""", config)


# A gather that has waited for long ends as others do, and leaves no call open.
def a_shutdown_that_waits_for_long_ends(config):
    run(3, """
init()
if rank == 1:
    wait_until(lambda: tenrec_torch._gather._watches)
rpc.shutdown()
assert not tenrec_torch._gather._watches
""", config)


def functions_with_references_of_others_run_on_the_configured_threads(config):
    run(3, """
THREADS = 8  # more than answers have
barrier = threading.Barrier(THREADS)
def idle_threads(ref):
    barrier.wait(30)
    idle = rpc.api._get_current_rpc_agent().get_debug_info()["agent.num_idle_threads"]
    barrier.wait(30)
    return idle
init(num_worker_threads=THREADS)
if rank == 0:
    ref = rpc.remote("w2", same, args=(1,))
    futures = [rpc.rpc_async("w1", idle_threads, args=(ref,)) for _ in range(THREADS)]
    assert [future.wait() for future in futures] == ["0"] * THREADS, futures
rpc.shutdown()
""", config)


def exceptions_with_any_text_reach_the_caller(config):
    run(2, """
def speak(text):
    raise ValueError(text)
init()
if rank == 0:
    for text, there in (("a\\0b", r"a\\x00b"), ("a\\udc80b", r"a\\udc80b"), ("a\\nb", "a\\nb")):
        try:
            rpc.rpc_sync("w1", speak, args=(text,))
        except ValueError as error:
            assert there in str(error) and "in speak" in str(error) and "\\0" not in str(error), (text, str(error))
        else:
            raise AssertionError("no error")
rpc.shutdown()
""", config)


def a_program_ends_without_shutdown(config):
    run(2, """
init()
if rank == 0:
    kept = rpc.rpc_async("w1", nap, args=(0.5,))
    ref = rpc.remote("w1", torch.add, args=(torch.ones(1), 1))
    assert ref.to_here().item() == 2
    open(os.environ["INIT_METHOD"][7:] + ".done", "w").close()
else:
    for _ in range(3000):
        if not os.path.exists(os.environ["INIT_METHOD"][7:] + ".done"):
            nap(0.01)
""", config)


# torch's own agent, given only the address of a worker: no member of its group. A call is a
# pickle, which may name any code; with and without a tensor.
STRANGER = """
import os, sys, torch, torch.distributed as dist
from torch.distributed import autograd, rpc
os.environ["TP_SOCKET_IFNAME"] = "lo"
store = dist.PrefixStore("rpc_prefix_0", dist.HashStore())
store.set("names/1", "w0")
store.set("addrs/w0", sys.argv[1])
agent = rpc.TensorPipeAgent(store, "stranger", 0, 2, rpc.TensorPipeRpcBackendOptions(), {}, [])
autograd._init(0)
rpc.api._init_rpc_states(agent)
for args in [(sys.argv[2],), (torch.ones(4),)]:
    try:
        print(rpc.rpc_sync("w0", os.mkdir if len(args[0]) > 4 else torch.numel, args=args, timeout=20))
    except RuntimeError as error:
        print("refused:", error)
sys.stdout.flush()
os._exit(0)
"""


def a_stranger_runs_nothing(config):
    said = run(1, """
init()
here = os.environ["INIT_METHOD"][7:] + ".made"
agent = rpc.api._get_current_rpc_agent()
done = subprocess.run([sys.executable, "-c", os.environ["STRANGER"], agent.address(), here],
                      capture_output=True, text=True, timeout=50)
info = agent.get_debug_info()
# With a secret no call of the stranger is read. The refusal is in bytes that torch does not know, and may die of them.
read = 2 if info["tensorpipe.security"].startswith("none") else 0
refused = [line for line in done.stdout.splitlines() if line.startswith("refused:")]
assert done.stdout.splitlines() == refused and (len(refused) == 2 or not read), done
assert done.stdout.count("members of its group only") == read, done
assert not os.path.exists(here)
assert info["agent.server_refused_calls"] == str(read), info
assert rpc.rpc_sync("w0", same, args=(1,)) == 1
rpc.shutdown()
print("the worker is well")
""", config, {"STRANGER": STRANGER})
    assert "the worker is well" in said[0], said[0]


# A thread that waits for a value of its own worker when the call that makes the value fails.
# remote() itself raises the error where the call has failed before remote() returns. torch never
# ends its own fork of a call that failed otherwise than by its limit, and ends that of the last
# call in another thread, which the shutdown must not meet.
def a_failed_call_to_itself_wakes_waiters_for_its_value(config):
    run(1, """
class Unreadable:
    def __reduce__(self):
        return fail, ()
held = threading.Event()
def hold():
    held.wait(30)
init()
for context in (contextlib.nullcontext, autograd.context):
    held.clear()
    with context():
        late = rpc.remote("w0", hold, timeout=0.3)
        raises(RuntimeError, "more than set timeout|timed out", late.to_here)
        held.set()
        raises(RuntimeError, "no luck",
               lambda: rpc.remote("w0", same, args=(Unreadable(),)).to_here())
assert rpc.remote("w0", same, args=(1,)).to_here() == 1
wait_until(lambda: rpc._rref_context_get_debug_info()["num_forks"] == "2")
rpc.shutdown(graceful=False)
""", config)


def names_must_differ(config):
    said = run(2, """
try:
    init(name="same")
except RuntimeError as error:
    print(error)
""", config)
    assert all("not unique" in text for text in said), said


def groups_that_differ_are_an_error_of_each_worker(config):
    run(2, LATE_READER + """
raises(RuntimeError, ("'w1' says that the group has 3 workers, this one says 2",
                      "'w0' says that the group has 2 workers, this one says 3")[rank],
       lambda: init(world_size=2 + rank))
""", config)
    run(2, LATE_READER + """
raises(RuntimeError, "Workers 0 and 1 share the same name", lambda: init(name="same"))
""", config)


# Rank 1 ends as soon as its record is read: rank 0 waits no longer than for its own init.
def an_error_waits_for_no_ended_worker(config):
    run(2, LATE_READER + """
tenrec_torch._backend.REFUSAL_PATIENCE = 1e6
if rank == 1:
    tenrec_torch._backend._meet = lambda store, rank, world_size, mine, limit: (
        store.set("workers/1", json.dumps(mine)), os._exit(0))
raises(RuntimeError, "share the same name", lambda: init(name="same", rpc_timeout=1))
""", config)


# Rank 0 serves the store, and dies while the other waits for its record.
def an_init_whose_rank_0_dies_says_so(config):
    run(2, SERVED + """
import traceback
if rank == 0:
    tenrec_torch._backend._meet = lambda store, rank, world_size, mine, limit: (
        wait_until(lambda: tenrec_torch._C.has_key(store, "workers/1")), os._exit(0))
try:
    init()
except RuntimeError as error:
    assert re.search("^init_rpc: the store of the group is gone, which rank 0 serves", str(error)), str(error)
    assert "\\n" not in str(error) and traceback.format_exc().count("Traceback") == 1, traceback.format_exc()
else:
    raise AssertionError("init_rpc returned")
""", config)


# After the gather of the shutdown.
def a_shutdown_whose_rank_0_dies_in_the_end_says_so(config):
    run(2, SERVED + """
init()
if rank == 0:
    rpc.api._delete_all_user_and_unforked_owner_rrefs = lambda: os._exit(0)
raises(RuntimeError, "^the store of the group is gone, which rank 0 serves", rpc.shutdown)
""", config)


def a_shutdown_names_a_worker_that_dies_after_its_gather(config):
    for dead in range(3):
        run(3, f"""
dead = {dead}
""" + """
release = rpc.api._delete_all_user_and_unforked_owner_rrefs
def gathered(rank):
    return os.path.join(group["folder"], f"gathered.{rank}")
def release_or_die():
    open(gathered(rank), "x").close()
    if rank == dead:
        wait_until(lambda: all(os.path.exists(gathered(i)) for i in range(3)))
        os._exit(0)
    release()
rpc.api._delete_all_user_and_unforked_owner_rrefs = release_or_die
init()
raises(RuntimeError, f"^worker 'w{dead}' was lost while 'w{rank}' waited for it in rpc.shutdown.., since ", rpc.shutdown)
""", config)


# Rank 1 leaves when what rank 0 sends to reach it has failed twice.
def injected_failures_make_no_worker_lost(config):
    del config
    for do in "fail", "disconnect":
        run(2, """
def announce():
    wait_until(lambda: int(agent.get_debug_info()["faulty.rules.rule1.injected"]) >= 2)
    open(failed, "x").close()
def release_late():
    wait_until(lambda: os.path.exists(failed))
    release()
failed = os.path.join(group["folder"], "failed")
release = rpc.api._delete_all_user_and_unforked_owner_rrefs
init()
agent = rpc.api._get_current_rpc_agent()
if rank == 0:
    threading.Thread(target=announce, daemon=True).start()
else:
    rpc.api._delete_all_user_and_unforked_owner_rrefs = release_late
rpc.shutdown()
""", {"backend": "faulty", "backends": {
            "tensorpipe": {"plugin": "tensorpipe"},
            "faulty": {"plugin": "faulty", "wraps": "tensorpipe", "options": {"rules": [{"do": do, "on": ["CANCEL"]}]}}}})


def a_missing_worker_is_named(config):
    said = run(1, """
try:
    init(world_size=3, rpc_timeout=1)
except RuntimeError as error:
    print(error)
""", config)
    assert "with rank 1, 2, of 3" in said[0], said


def injected_failures_are_told_as_torch_does(config):
    del config
    faults = {"backend": "faulty", "backends": {
        "tensorpipe": {"plugin": "tensorpipe"},
        "faulty": {"plugin": "faulty", "wraps": "tensorpipe",
                   "options": {"messages_to_fail": ["SCRIPT_CALL"], "num_fail_sends": 1}}}}
    run(2, """
init()
if rank == 0:
    raises(RuntimeError, "RPCErr:2:", lambda: rpc.rpc_sync("w1", torch.add, args=(1, 2)))
    assert rpc.rpc_sync("w1", torch.add, args=(1, 2)) == 3
rpc.shutdown()
""", faults)


def config_errors_say_where(config):
    del config
    said = run(1, """
for wrong in ("backend: tensorpip\\n", {"backends": {"tensorpipe": {"plugin": "tensorpipe",
              "options": {"transport": 1}}}}):
    try:
        tenrec_torch.TenrecRpcBackendOptions(config=wrong)
    except ValueError as error:
        print(error)
""")
    assert "text:1:" in said[0] and "transports" in said[0], said


def a_program_at_rest_uses_no_cpu(config):
    run(2, """
init()
for _ in range(50):
    rpc.rpc_sync(f"w{1 - rank}", same, args=(1,))
nap(0.5)
before = time.process_time()
nap(1)
used = time.process_time() - before
assert used < 0.05, used
rpc.shutdown()
""", config)


CASES = [
    tensors_arrive_unchanged, unusual_tensors_arrive_as_pickled_by_torch,
    pickled_tensors_lie_in_the_bytes_that_arrived, sent_tensors_may_change_after_the_answer,
    nested_calls_end_with_one_thread, errors_reach_the_caller, a_worker_calls_itself, a_lost_worker_fails_calls,
    a_program_ends_without_shutdown, a_program_at_rest_uses_no_cpu, a_stranger_runs_nothing,
    a_failed_call_to_itself_wakes_waiters_for_its_value, a_shutdown_ends_when_a_member_dies,
    functions_with_references_of_others_run_on_the_configured_threads,
]
ONCE = [names_must_differ, groups_that_differ_are_an_error_of_each_worker, an_error_waits_for_no_ended_worker,
        a_missing_worker_is_named, an_init_whose_rank_0_dies_says_so, a_shutdown_whose_rank_0_dies_in_the_end_says_so,
        a_shutdown_names_a_worker_that_dies_after_its_gather, injected_failures_make_no_worker_lost,
        a_shutdown_ends_when_a_member_is_dead_already, a_shutdown_that_waits_for_long_ends,
        tensors_that_cannot_travel_are_refused_with_advice, exceptions_with_any_text_reach_the_caller, injected_failures_are_told_as_torch_does, config_errors_say_where]
PLANS = [(f"torch_{case.__name__}_over_{name}", case, over(*transports))
         for name, transports in (("tcp", ["uv"]), ("shared_memory", ["shm", "uv"]))
         for case in CASES] + [(f"torch_{case.__name__}", case, None) for case in ONCE]

main(PLANS)
