# SPDX-License-Identifier: Apache-2.0
"""secret_test.py MISSING TENREC LIAR - the backend TENREC in a group with a secret: the store where its
workers meet, and peers that prove nothing. LIAR is the folder of a plugin that says that it proves."""
import contextlib
import os
import sys
import tempfile

if sys.argv[1]:
    print(f"1..0 # SKIP {sys.argv[1]}")
    sys.exit(0)

import cases
from groups import LATE_READER, main, over, run

TENREC, LIAR = sys.argv[2:]
OPEN = {"security": {"plain_peers": "same_user"}}  # as a configuration that workers of C share

# Where a call of the group would leave its trace; and a value that leaves it where it is unpickled.
TRACE = """
trace = os.environ["INIT_METHOD"][7:] + ".made"
class Evil:
    def __reduce__(self):
        return os.mkdir, (trace,)
def evil():
    return Evil()
"""


@contextlib.contextmanager
def secret_file():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "job.key")
        assert cases.run(TENREC, "secret", "new", path).returncode == 0
        yield path


def with_secret(world, program, config, **env):
    with secret_file() as path:
        return run(world, program, config, dict(env, TENREC_SECRET_FILE=path))


def wrapped(config, plugin):
    """The configuration with a backend of this plugin around its own."""
    around = {plugin: {"plugin": plugin, "wraps": config["backend"]}}
    return dict(config, backend=plugin, backends=dict(config["backends"], **around))


def members_with_the_secret_call_each_other(config):
    with_secret(2, TRACE + """
init()
for to in ("w0", "w1"):
    assert rpc.rpc_sync(to, same, args=(7,)) == 7
    assert torch.equal(rpc.rpc_sync(to, same, args=(torch.arange(1 << 18),)), torch.arange(1 << 18))
    sparse = torch.eye(4).to_sparse()
    assert torch.equal(rpc.rpc_sync(to, same, args=(sparse,)).to_dense(), sparse.to_dense())
    assert rpc.remote(to, same, args=(sparse,)).to_here().is_sparse
    raises(ValueError, "no luck", lambda: rpc.rpc_sync(to, fail))
if rank == 0:
    assert rpc.rpc_sync("w1", evil) is None and os.path.isdir(trace)
assert rpc.api._get_current_rpc_agent().get_debug_info()["agent.server_refused_calls"] == "0"
rpc.shutdown()
""", dict(config, **OPEN))


# A worker in mode none, whose record says otherwise.
LIES = """
def lie(**fields):
    del os.environ["TENREC_SECRET_FILE"]
    meet = tenrec_torch._backend._meet
    tenrec_torch._backend._meet = lambda store, rank, size, mine, limit: meet(
        store, rank, size, dict(mine, security="secret", **fields), limit)
"""


# A member of the store without the secret: its name and its token are right.
def a_plain_member_runs_nothing(config):
    said = with_secret(2, TRACE + LIES + """
if rank == 1:
    lie()
init()
if rank == 1:
    for args in [(trace,), (torch.ones(4),)]:
        raises(RuntimeError, "w0", lambda: rpc.rpc_sync("w0", os.mkdir, args=args, timeout=20))
    print("refused")
rpc.api._get_current_rpc_agent().barrier(30)
assert not os.path.exists(trace)
assert rank == 1 or rpc.rpc_sync("w0", same, args=(1,)) == 1
rpc.shutdown(graceful=False)
""", dict(config, **OPEN))
    assert "refused" in said[1], said[1]


# The same member as a callee. A record without a token is that of a plain peer.
def an_answer_of_a_plain_member_is_not_read(config):
    said = with_secret(2, TRACE + LIES + """
if rank == 1:
    lie(token=0)
init()
if rank == 0:
    raises(RuntimeError, "cannot prove to be of the group", lambda: rpc.rpc_sync("w1", evil, timeout=20))
    print("refused")
rpc.api._get_current_rpc_agent().barrier(30)
assert not os.path.exists(trace)
rpc.shutdown(graceful=False)
""", dict(config, **OPEN))
    assert "refused" in said[0], said[0]


# The last line of defence: the mark of a proved connection is missing.
def a_request_without_the_mark_of_a_proof_is_not_read(config):
    del config
    with_secret(1, TRACE + """
init()
for args in [(Evil(),), (torch.ones(4),)]:
    raises(RuntimeError, "workers that have proved to belong to the group only",
           lambda: rpc.rpc_sync("w0", same, args=args))
assert not os.path.exists(trace)
assert rpc.api._get_current_rpc_agent().get_debug_info()["agent.server_refused_calls"] == "2"
rpc.shutdown(graceful=False)
""", {"backend": "echo", "backends": {"echo": {"plugin": "echo"}}}, TENREC_PLUGIN_PATH=LIAR)


# Of all kinds: a value, tensors that have memory of their own and that are pickled, an error, the
# value of a reference, and that a reference was made.
def an_answer_without_the_mark_of_a_proof_is_not_read(config):
    said = with_secret(2, TRACE + """
init()
if rank == 0:
    refused = "answers of workers that have proved to belong to the group only"
    sparse = torch.eye(4).to_sparse()
    for call in [lambda: rpc.rpc_sync("w1", evil), lambda: rpc.rpc_sync("w1", same, args=(torch.ones(1 << 18),)),
                 lambda: rpc.rpc_sync("w1", same, args=(sparse,)), lambda: rpc.rpc_sync("w1", fail),
                 lambda: rpc.remote("w1", evil).to_here(timeout=20)]:
        raises(RuntimeError, refused, call)
    print("refused")
rpc.api._get_current_rpc_agent().barrier(30)
assert not os.path.exists(trace)
rpc.shutdown(graceful=False)
""", wrapped(config, "forget"), TENREC_PLUGIN_PATH=os.pathsep.join([LIAR, os.environ["TENREC_PLUGIN_PATH"]]))
    assert "refused" in said[0], said[0]


def a_backend_without_proofs_is_refused(config):
    del config
    said = with_secret(1, """
for security in ({}, {"mode": "none"}):
    try:
        tenrec_torch.TenrecRpcBackendOptions(config=dict(group["config"], security=security))
        print("accepted", security)
    except ValueError as error:
        print("refused", security, error)
""", {"backend": "echo", "backends": {"echo": {"plugin": "echo"}}})
    assert "refused {} security asks for a proof" in said[0] and "accepted {'mode': 'none'}" in said[0], said[0]


# Plain clients are refused by this store; torch's takes the bytes of the refusal for answers, until
# they end.
JOINS = """
import os
import torch.distributed as dist, torch.distributed.rpc as rpc, tenrec_torch
rank = int(os.environ["RANK"])
try:
    plain = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), 2, False)
    for _ in range(100):
        plain.add("k", 1)
    print("torch's client was let in")
except RuntimeError:
    pass
for options in (None, rpc.TensorPipeRpcBackendOptions(num_worker_threads=4)):
    rpc.init_rpc(f"w{rank}", backend=rpc.BackendType.TENREC, rank=rank, world_size=2,
                 rpc_backend_options=options)
    assert rpc.rpc_sync(f"w{1 - rank}", int, args=("7",)) == 7
    rpc.shutdown()
"""


def succeeds_under_tenrec_run(n, program, config):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.yaml")
        with open(path, "w", encoding="ascii") as f:
            f.write(config)
        got = cases.run(TENREC, "run", "-n", n, "--config", path, "--", sys.executable, "-c", program)
    assert (got.returncode, got.stdout) == (0, ""), got


def workers_join_a_store_that_refuses_plain_clients(config):
    del config
    succeeds_under_tenrec_run(2, JOINS, "security: { store_plain: none }\n")


# By two connections each, of which the one proves the secret and the other is let in without.
SHARES = """
import datetime, os
import torch.distributed as dist, tenrec_torch
host, port = os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]
short = datetime.timedelta(seconds=0.2)
ours = tenrec_torch._C.open_store(tenrec_torch.TenrecRpcBackendOptions().config, f"tcp://{host}:{port}", 30)
torchs = dist.TCPStore(host, int(port), None, False)
for one, other in ((ours, torchs), (torchs, ours)):
    before = ours.num_keys()
    one.set("k", "a\\0b")
    assert other.get("k") == b"a\\0b" == one.get("k")
    assert other.num_keys() == one.num_keys() == before + 1
    assert one.compare_set("k", "a\\0b", "c") == b"c" == other.get("k")
    assert one.compare_set("k", "x", "y") == b"c"
    assert one.add("n", 2) == 2 and other.add("n", 3) == 5 and one.get("n") == b"5"
    one.wait(["k", "n"], short)
    assert one.delete_key("k") and other.delete_key("n") and not one.delete_key("k")
    assert not tenrec_torch._C.has_key(one, "k")
ours.set_timeout(short)
for wait in (lambda: ours.wait(["k"]), lambda: ours.get("k")):
    try:
        wait()
        print("a missing key was found")
    except RuntimeError:
        pass
"""


def the_proved_client_is_a_store_of_torch(config):
    del config
    succeeds_under_tenrec_run(1, SHARES, "security: { store_plain: same_user }\n")


# The method of options names them; they end before the group is started.
PASSES_ON = """
import torch.distributed.rpc as rpc, tenrec_torch
Options = tenrec_torch.TenrecRpcBackendOptions
for given in ("now", "later"):
    old = Options()
    new = Options(init_method=old.init_method if given == "now" else None)
    if given == "later":
        new.init_method = old.init_method
    del old
    rpc.init_rpc("w0", rank=0, world_size=1, backend=rpc.BackendType.TENREC, rpc_backend_options=new)
    rpc.shutdown()
"""


def a_method_of_other_options_is_that_of_their_new_owner(config):
    del config
    succeeds_under_tenrec_run(1, PASSES_ON, "security: { store_plain: none }\n")


def a_method_whose_options_are_gone_is_an_error(config):
    said = with_secret(1, """
from torch.distributed import rendezvous
options = tenrec_torch.TenrecRpcBackendOptions(config=group["config"], init_method="tcp://127.0.0.1:1#x")
method = options.init_method
plain = tenrec_torch.TenrecRpcBackendOptions(config=dict(group["config"], security={"mode": "none"}),
                                             init_method=method)
assert plain.init_method == "tcp://127.0.0.1:1" != method, plain.init_method
del options
for lost in (method, "tenrec+env://", "tenrec+env://#x"):
    raises(RuntimeError, "'tenrec.*was read from no longer exist", lambda: next(rendezvous(lost, 0, 1)))
print("refused")
""", config)
    assert "refused" in said[0], said[0]


# torch's store of a launcher: its address and the variables.
STORE = """
import datetime
import torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(store.port), RANK="0", WORLD_SIZE="1",
                  TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RESTART_COUNT="0",
                  TORCHELASTIC_RUN_ID="a", TENREC_RUN_ID=os.environ["RUN"])
os.environ["INIT_METHOD"] = "env://"
"""


def a_store_that_proves_nothing_is_not_that_of_tenrec_run(config):
    said = with_secret(1, STORE + """
raises(RuntimeError, "speaks no proof of the group secret", init)
print("refused")
""", config, RUN="a")
    assert "refused" in said[0], said[0]


def workers_meet_in_the_store_of_another_launcher(config):
    said = with_secret(1, STORE + """
init()
assert rpc.rpc_sync("w0", same, args=(1,)) == 1
rpc.shutdown()
""", config, RUN="another")
    assert "asks for no proof" not in said[0], said[0]


# 127.0.0.2 is of this host, and stands for an address beyond it.
def workers_are_told_once_of_a_store_beyond_loopback(config):
    said = with_secret(1, STORE + """
tenrec_torch._rendezvous.host_address = lambda method: "127.0.0.2"
for _ in range(2):
    init()
    assert rpc.rpc_sync("w0", same, args=(1,)) == 1
    rpc.shutdown()
""", config, RUN="another")
    assert said[0].count("asks for no proof of the group secret") == 1, said[0]


# Assigned to the options after they were made, and by the name that torch's own class has for it.
def workers_are_told_of_a_store_that_is_set_later(config):
    for assign in ("options.init_method = method",
                   "rpc.RpcBackendOptions.init_method.__set__(options, method)"):
        said = with_secret(1, STORE + f"""
tenrec_torch._rendezvous.host_address = lambda method: "127.0.0.2"
options = tenrec_torch.TenrecRpcBackendOptions(config=group["config"], init_method="file:///nowhere")
method = f"tcp://127.0.0.1:{{store.port}}"
{assign}
rpc.init_rpc("w0", backend=rpc.BackendType.TENREC, rank=0, world_size=1, rpc_backend_options=options)
rpc.shutdown()
""", config, RUN="another")
        assert said[0].count("asks for no proof of the group secret") == 1, said[0]


# ---- mistakes ---------------------------------------------------------------


def the_section_may_be_in_the_configuration(config):
    with secret_file() as path:
        run(2, """
assert tenrec_torch.TenrecRpcBackendOptions(config=group["config"]).config.security_mode == "secret"
init()
assert rpc.rpc_sync(f"w{1 - rank}", same, args=(7,)) == 7
rpc.shutdown()
""", dict(config, security={"mode": "secret", "secret_file": path}))


def a_section_that_cannot_be_obeyed_is_a_value_error(config):
    with secret_file() as path:
        os.chmod(path, 0o644)
        run(1, f"""
def options(**security):
    tenrec_torch.TenrecRpcBackendOptions(config=dict(group["config"], security=security))
raises(ValueError, "job.key", lambda: options(secret_file={path!r}))
raises(ValueError, "/no/such", lambda: options(secret_file="/no/such"))
raises(ValueError, "no group secret was given", lambda: options(mode="secret"))
raises(ValueError, "security.mode.*'sicret'", lambda: options(mode="sicret"))
os.environ["TENREC_SECRET_FILE"] = {path!r}
raises(ValueError, "job.key", init)
""", config)


# Each worker ends its init, with an error that names both modes.
def modes_that_differ_are_an_error(config):
    for first, second in (("none", "secret"), ("secret", "tls")):
        with_secret(2, LATE_READER + f"""
os.environ["TENREC_SECURITY__MODE"] = ({first!r}, {second!r})[rank]
raises(RuntimeError, "'w1' is in security mode '{second}', worker 'w0' in mode '{first}'", init)
""", config)


def secrets_that_differ_are_an_error(config):
    with secret_file() as other:
        with_secret(2, f"""
if rank == 1:
    os.environ["TENREC_SECRET_FILE"] = {other!r}
init()
raises(RuntimeError, "has another group secret", lambda: rpc.rpc_sync(f"w{{1 - rank}}", same, args=(1,)))
rpc.api._get_current_rpc_agent().barrier(30)
rpc.shutdown(graceful=False)
""", config)


# tenrec_torch.worker: the calls of C, with a class of errors for each kind.
def a_refused_call_of_a_worker_is_a_permission_error(config):
    with_secret(2, """
import json
from tenrec_torch import worker
if rank == 1:
    del os.environ["TENREC_SECRET_FILE"]
os.environ.update(RANK=str(rank), WORLD_SIZE="2")
me = worker.Worker(f"w{rank}", config=json.dumps(group["config"]) + chr(10),
                   overrides={"init_method": os.environ["INIT_METHOD"]})
me.init_rpc()
raises(PermissionError, "EPERM.*group secret", lambda: me.call(f"w{1 - rank}", "f"))
with open(f"{group['folder']}/done.{rank}", "w"):
    pass
wait_until(lambda: os.path.exists(f"{group['folder']}/done.{1 - rank}"))
me.shutdown(graceful=False)
""", config)


CASES = [members_with_the_secret_call_each_other, a_plain_member_runs_nothing, an_answer_of_a_plain_member_is_not_read,
         an_answer_without_the_mark_of_a_proof_is_not_read]
ONCE = [a_request_without_the_mark_of_a_proof_is_not_read, a_backend_without_proofs_is_refused,
        workers_join_a_store_that_refuses_plain_clients, the_proved_client_is_a_store_of_torch,
        a_method_of_other_options_is_that_of_their_new_owner, a_method_whose_options_are_gone_is_an_error,
        a_store_that_proves_nothing_is_not_that_of_tenrec_run,
        workers_meet_in_the_store_of_another_launcher, workers_are_told_once_of_a_store_beyond_loopback,
        workers_are_told_of_a_store_that_is_set_later, the_section_may_be_in_the_configuration,
        a_section_that_cannot_be_obeyed_is_a_value_error, modes_that_differ_are_an_error,
        secrets_that_differ_are_an_error, a_refused_call_of_a_worker_is_a_permission_error]
PLANS = [("tcp", over("uv")), ("shared_memory", over("shm", "uv"))]
main([(f"torch_secret_{case.__name__}_over_{name}", case, config) for name, config in PLANS for case in CASES] +
     [("torch_secret_members_with_the_secret_call_each_other_through_faulty",
       members_with_the_secret_call_each_other, wrapped(over("uv"), "faulty"))] +
     [(f"torch_secret_{case.__name__}", case, over("uv")) for case in ONCE])
