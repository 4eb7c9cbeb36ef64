# SPDX-License-Identifier: Apache-2.0
"""Tensors on CUDA devices over the backend TENREC, between two processes of this host and in one. Prints TAP.

    device_test.py REASON [GUARD] [GPUS]

REASON, if not empty, says why the backend is not built: all is skipped. GUARD is the stand-in of
libc10_cuda.so (cuda/guard.cc), for a torch without CUDA and a host without a GPU; the stand-in of the driver
is then found by LD_LIBRARY_PATH. With an empty GUARD the cases run on GPUS of this host, 4 by default, as
script/ci/gpu-test --torch starts them; those that need more are left out."""
import sys

if sys.argv[1]:
    print(f"1..0 # SKIP {sys.argv[1]}")
    sys.exit(0)

from groups import main, over, run

GUARD = sys.argv[2] if len(sys.argv) > 2 else ""
GPUS = int(sys.argv[3]) if len(sys.argv) > 3 else 4

# put_on(t, i) copies t to device i. use_stream(i) makes another stream the current one there.
STAND_IN = f"""
torch.ops.load_library({GUARD!r})
torch.cuda.device_count = lambda: 4
put_on, use_stream = torch.ops.stand_in.put_on, torch.ops.stand_in.use_stream
"""
GPU = """
put_on = lambda t, i: t.to(f"cuda:{i}")
use_stream = lambda i: torch.cuda.set_stream(torch.cuda.Stream(i))
"""
COMMON = """
def copy(x):
    return str(x.device), x.clone()
def copies(xs):
    return [copy(x) for x in xs]
def pattern(seed, n=1 << 20):
    return (torch.arange(n) * 7 + seed).to(torch.int32)
def is_pattern(t, seed, n=1 << 20):
    return torch.equal(t.cpu(), pattern(seed, n))
def queued(seed, device, n=1 << 20):
    # On a stream that runs late: the last copy is not over when this returns.
    use_stream(device)
    return put_on(pattern(seed, n), device).clone()
"""


def run_on_devices(program, config, env=None):
    if GPUS == 1:  # the order of streams can be seen on one device, too
        program = program.replace("cuda:1", "cuda:0")
    return run(2, (STAND_IN if GUARD else GPU) + COMMON + program, config, env)


def argument_and_result_travel_by_the_map(config):
    run_on_devices("""
init(device_maps={"w1": {"cuda:0": "cuda:1"}} if rank == 0 else None)
if rank == 0:
    for seed in range(20):
        device, back = rpc.rpc_sync("w1", copy, args=(queued(seed, 0),))
        assert device == "cuda:1" and str(back.device) == "cuda:0", (device, back.device)
        assert is_pattern(back, seed), seed
rpc.shutdown()
""", config)


def each_device_of_a_message_has_its_target(config):
    run_on_devices("""
init(device_maps={"w1": {"cuda:0": "cuda:1", "cuda:1": "cuda:0"}} if rank == 0 else None)
if rank == 0:
    sent = [queued(1, 0), torch.arange(4), queued(2, 1, 1000), queued(3, 0, 1), put_on(torch.empty(0), 1)]
    back = rpc.rpc_sync("w1", copies, args=(sent,))
    assert [d for d, _ in back] == ["cuda:1", "cpu", "cuda:0", "cuda:1", "cuda:0"], back
    assert [str(t.device) for _, t in back] == ["cuda:0", "cpu", "cuda:1", "cuda:0", "cuda:1"]
    assert is_pattern(back[0][1], 1) and is_pattern(back[2][1], 2, 1000) and is_pattern(back[3][1], 3, 1)
    assert back[1][1].tolist() == [0, 1, 2, 3] and back[4][1].numel() == 0
rpc.shutdown()
""", config)


def host_and_device_are_mapped_to_each_other(config):
    run_on_devices("""
init(device_maps={"w1": {"cpu": "cuda:0", "cuda:1": "cpu"}} if rank == 0 else None)
if rank == 0:
    for seed in range(5):
        device, back = rpc.rpc_sync("w1", copy, args=(pattern(seed),))
        assert device == "cuda:0" and back.is_cpu and is_pattern(back, seed), device
        device, back = rpc.rpc_sync("w1", copy, args=(queued(seed, 1),))
        assert device == "cpu" and str(back.device) == "cuda:1" and is_pattern(back, seed), device
rpc.shutdown()
""", config)


def calls_in_flight_are_ordered_each_by_its_streams(config):
    run_on_devices("""
init(device_maps={"w1": {"cuda:0": "cuda:1"}} if rank == 0 else None)
if rank == 0:
    use_stream(0)
    calls = [rpc.rpc_async("w1", copy, args=(queued(seed, 0, 10000 + seed),)) for seed in range(60)]
    copied = [f.then(lambda f: f.value()[1].clone()) for f in calls]  # on streams of the callback
    for seed in range(60):
        assert is_pattern(calls[seed].wait()[1], seed, 10000 + seed), seed
        assert is_pattern(copied[seed].wait(), seed, 10000 + seed), seed
rpc.shutdown()
""", config)


def references_keep_what_is_on_a_device(config):
    run_on_devices("""
def fetched(r):
    return copy(r.to_here())
init(device_maps={"w1": {"cuda:0": "cuda:1"}} if rank == 0 else {"w0": {"cuda:1": "cuda:0"}})
if rank == 0:
    made = rpc.remote("w1", copy, args=(queued(5, 0),))
    device, back = made.to_here()
    assert device == "cuda:1" and str(back.device) == "cuda:0" and is_pattern(back, 5), device
    mine = rpc.RRef(queued(6, 0))
    device, back = rpc.rpc_sync("w1", fetched, args=(mine,))
    assert device == "cuda:1" and str(back.device) == "cuda:0" and is_pattern(back, 6), device
    del made, mine
rpc.shutdown()
""", config)


def worker_calls_itself_by_its_map(config):
    run_on_devices("""
init(device_maps={f"w{rank}": {"cuda:0": "cuda:1"}})
device, back = rpc.rpc_sync(f"w{rank}", copy, args=(queued(rank, 0),))
assert device == "cuda:1" and str(back.device) == "cuda:0" and is_pattern(back, rank), device
rpc.shutdown()
""", config)


def tensor_without_a_map_fails_its_call_alone(config):
    run_on_devices("""
def on_third():
    return put_on(torch.ones(3), 3)
init(device_maps={"w1": {"cuda:0": "cuda:1"}} if rank == 0 else None, devices=["cuda:1", "cuda:3"] if rank else None)
if rank == 0:
    raises(RuntimeError, "only supports CPU tensors by default.*cuda:2.*`set_device_map` on "
           "`TensorPipeRpcBackendOptions`", lambda: rpc.rpc_sync("w1", copy, args=(put_on(torch.ones(3), 2),)))
    raises(RuntimeError, "Response device mapping is not available for cuda:3.*set_device_map",
           lambda: rpc.rpc_sync("w1", on_third))
    assert rpc.rpc_sync("w1", copy, args=(torch.ones(2),))[0] == "cpu"
    assert is_pattern(rpc.rpc_sync("w1", copy, args=(queued(1, 0),))[1], 1)
rpc.shutdown()
""", config)


def result_on_a_device_in_a_group_without_maps_is_refused(config):
    run_on_devices("""
def on_first():
    return put_on(torch.ones(3), 0)
init()
if rank == 0:
    raises(RuntimeError, "Response device mapping is not available for cuda:0", lambda: rpc.rpc_sync("w1", on_first))
    assert rpc.rpc_sync("w1", copy, args=(torch.ones(2),))[0] == "cpu"
rpc.shutdown()
""", config)


def members_of_a_dynamic_group_use_the_maps_of_those_that_join(config):
    run_on_devices("""
options = tenrec_torch.TenrecRpcBackendOptions(
    config=group["config"], init_method=os.environ["INIT_METHOD"],
    device_maps={"w0": {"cuda:0": "cuda:1"}} if rank == 1 else None)
joined, called = group["folder"] + "/joined", group["folder"] + "/called"
if rank == 1:
    wait_until(lambda: os.path.exists(joined))
rpc.init_rpc(f"w{rank}", backend=rpc.BackendType.TENREC, rank=rank, rpc_backend_options=options)
if rank == 0:
    open(joined, "w").close()
    wait_until(lambda: os.path.exists(called))
else:
    device, back = rpc.rpc_sync("w0", copy, args=(queued(4, 0),))
    assert device == "cuda:1" and str(back.device) == "cuda:0" and is_pattern(back, 4), device
    open(called, "w").close()
rpc.shutdown()
""", config)


def driver_that_fails_is_named_by_init(config):
    run_on_devices("""
raises(RuntimeError, "device maps: .*cuInit",
       lambda: init(device_maps={f"w{1 - rank}": {"cuda:0": "cuda:1"}}))
""", config, {"FAKE_CUDA_FAIL": "cuInit:1"})


NEEDS = {each_device_of_a_message_has_its_target: 2, host_and_device_are_mapped_to_each_other: 2,
         tensor_without_a_map_fails_its_call_alone: 4}  # GPUs; the others one
CASES = [
    argument_and_result_travel_by_the_map, each_device_of_a_message_has_its_target,
    host_and_device_are_mapped_to_each_other, calls_in_flight_are_ordered_each_by_its_streams,
]
ONCE = [references_keep_what_is_on_a_device, worker_calls_itself_by_its_map, tensor_without_a_map_fails_its_call_alone,
        result_on_a_device_in_a_group_without_maps_is_refused,
        members_of_a_dynamic_group_use_the_maps_of_those_that_join]
CONFIGS = {"cuda_ipc": None, "cuda_basic": over("uv", channels=["basic", "cuda_basic"]),
           "faulty": {"backend": "faulty", "backends": {"tensorpipe": {"plugin": "tensorpipe"}, "faulty": {
               "plugin": "faulty", "wraps": "tensorpipe"}}}}
PLANS = [(f"torch_device_{case.__name__}_over_{name}", case, config)
         for name, config in CONFIGS.items() for case in CASES]
PLANS += [(f"torch_device_{case.__name__}", case, None) for case in ONCE]
if GUARD:
    PLANS.append(("torch_device_driver_that_fails_is_named_by_init", driver_that_fails_is_named_by_init, None))
for name, case, _ in PLANS:
    if NEEDS.get(case, 1) > GPUS:
        print(f"# {name} is left out: it needs {NEEDS[case]} GPUs, found {GPUS}")
main([plan for plan in PLANS if NEEDS.get(plan[1], 1) <= GPUS])
