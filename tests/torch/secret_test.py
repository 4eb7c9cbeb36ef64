# SPDX-License-Identifier: Apache-2.0
"""secret_test.py MISSING TENREC LIAR - the backend TENREC in a group with a secret: peers that prove
nothing. LIAR is the folder of a plugin that says that it proves."""
import os
import sys
import tempfile

if sys.argv[1]:
    print(f"1..0 # SKIP {sys.argv[1]}")
    sys.exit(0)

import cases
from groups import main, over, run

TENREC, LIAR = sys.argv[2:]
OPEN = {"security": {"plain_peers": "same_user"}}  # as a configuration that workers of C share

# Where a call of the group would leave its trace; and a value that leaves it where it is unpickled.
TRACE = """
trace = os.environ["INIT_METHOD"][7:] + ".made"
class Evil:
    def __reduce__(self):
        return os.mkdir, (trace,)
"""


def with_secret(world, program, config, **env):
    with tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, "job.key")
        assert cases.run(TENREC, "secret", "new", key).returncode == 0
        return run(world, program, config, dict(env, TENREC_SECRET_FILE=key))


def members_with_the_secret_call_each_other(config):
    with_secret(2, """
init()
for to in ("w0", "w1"):
    assert rpc.rpc_sync(to, same, args=(7,)) == 7
    assert torch.equal(rpc.rpc_sync(to, same, args=(torch.arange(1 << 18),)), torch.arange(1 << 18))
    sparse = torch.eye(4).to_sparse()
    assert torch.equal(rpc.rpc_sync(to, same, args=(sparse,)).to_dense(), sparse.to_dense())
assert rpc.api._get_current_rpc_agent().get_debug_info()["agent.server_refused_calls"] == "0"
rpc.shutdown()
""", dict(config, **OPEN))


# A member of the store without the secret, in mode none: its record and its token are right.
def a_plain_member_runs_nothing(config):
    said = with_secret(2, TRACE + """
if rank == 1:
    del os.environ["TENREC_SECRET_FILE"]
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
    said = with_secret(2, TRACE + """
def evil():
    return Evil()
if rank == 1:
    del os.environ["TENREC_SECRET_FILE"]
    meet = tenrec_torch._backend._meet
    tenrec_torch._backend._meet = lambda store, rank, size, mine, limit: meet(
        store, rank, size, {key: mine[key] for key in mine if key != "token"}, limit)
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


CASES = [members_with_the_secret_call_each_other, a_plain_member_runs_nothing, an_answer_of_a_plain_member_is_not_read]
ONCE = [a_request_without_the_mark_of_a_proof_is_not_read, a_backend_without_proofs_is_refused]
main([(f"torch_secret_{case.__name__}_over_{name}", case, over(*transports))
      for name, transports in (("tcp", ["uv"]), ("shared_memory", ["shm", "uv"])) for case in CASES] +
     [(f"torch_secret_{case.__name__}", case, over("uv")) for case in ONCE])
