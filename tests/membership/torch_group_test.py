# SPDX-License-Identifier: Apache-2.0
"""Our dynamic groups against what torch.distributed.rpc does in a store: its own code joins,
its own agent finds the members. Prints TAP; skips without torch."""

import ast
import datetime
import operator
import os
import select
import subprocess
import sys
import time

os.environ["TP_SOCKET_IFNAME"] = "lo"
try:
    import torch.distributed as dist
    from torch.distributed import autograd, rpc
    from torch.distributed.rpc.backend_registry import _group_membership_management
except ImportError:
    print("1..0 # SKIP python3-torch is not installed")
    sys.exit(0)

from cases import run_cases  # pylint: disable=wrong-import-position

TOOL, WORKER = sys.argv[1:]
LIMIT = datetime.timedelta(seconds=20)
SECONDS = LIMIT.total_seconds()
MS = int(SECONDS * 1000)
LIST = "names/_ALL_WORKER_INFOS"
TOKEN = "RpcGroupManagementToken"


class Member:
    """A Tenrec process that executes orders."""

    def __init__(self, port=None, lease_ms=60000):
        self.process = subprocess.Popen([TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if port is not None:
            self.ok("open", f"tcp://127.0.0.1:{port}", lease_ms)

    def ask(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def ok(self, *words):
        line = self.ask(*words)
        assert line.startswith("ok "), f"{words}: {line}"
        return line[3:]

    def reserve(self, number, name):
        self.ok("reserve", number, name, MS)

    def join(self, number, name):
        self.reserve(number, name)
        self.ok("join", f"uv://127.0.0.1:{1000 + number}")

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(SECONDS) == 0, "the tool failed"

    def kill(self):
        self.process.kill()
        self.process.wait(SECONDS)


class Watched:
    """A store that calls `waits` when torch begins to wait."""

    def __init__(self, store, waits):
        self.store, self.waits = store, waits

    def __getattr__(self, name):
        return getattr(self.store, name)

    def wait(self, keys):
        self.waits()
        self.store.wait(keys)


class Joiner:
    """A torch worker that joins, by torch's own code, and does `body` when it may. It is a process: compare_set of old
    versions of torch makes its result without the lock of the interpreter, which other threads must not notice."""

    def __init__(self, port, name, body=lambda: None):
        reader, writer = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(reader)
            self.run(port, name, body, writer)
        os.close(writer)
        self.reader, self.said = reader, b""

    @staticmethod
    def run(port, name, body, writer):
        try:
            with _group_membership_management(Watched(torch_part(port), lambda: os.write(writer, b"waits\n")), name, True):
                said = repr(body())
        except Exception as reason:  # reported by finish
            said = f"fails: {reason!r}"
        os.write(writer, said.encode() + b"\n")
        os._exit(0)

    def hear(self, ends):
        """Reads until `ends` or the end."""
        end = time.monotonic() + SECONDS
        while not ends(self.said):
            assert select.select([self.reader], [], [], max(0, end - time.monotonic()))[0], f"torch waits for ever: {self.said!r}"
            more = os.read(self.reader, 4096)
            if not more:
                break
            self.said += more

    def waits(self):
        self.hear(lambda said: b"waits\n" in said)
        return b"waits\n" in self.said

    def finish(self):
        """Returns what `body` has returned."""
        self.hear(lambda said: False)
        os.close(self.reader)
        equal(os.waitpid(self.process, 0)[1], 0)
        last = self.said.decode().splitlines()[-1]
        assert not last.startswith("fails: "), last
        return ast.literal_eval(last)


def equal(got, expected):
    assert got == expected, f"got {got!r}, expected {expected!r}"


def torch_server():
    return dist.TCPStore("127.0.0.1", 0, None, True, timeout=LIMIT, wait_for_workers=False)


def torch_part(port):
    """What init_rpc makes of its first store."""
    return dist.PrefixStore("rpc_prefix_0", dist.TCPStore("127.0.0.1", port, None, False, timeout=LIMIT))


def members(store):
    """As torch's agent reads them."""
    found = {}
    for item in store.get(LIST).decode().split(",")[:-1]:
        name, _, number = item.rpartition("-")
        equal(store.get(f"names/{number}").decode(), name)
        found[int(number)] = (name, store.get(f"addrs/{name}").decode())
    return found


def torch_finds_our_members():
    server = torch_server()
    ours = [Member(server.port) for _ in range(2)]
    ours[0].join(0, "a")
    ours[1].join(1, "b")
    store = torch_part(server.port)
    equal(store.compare_set("rpcIsStaticGroup", "", "false"), b"false")
    expected = {0: ("a", "uv://127.0.0.1:1000"), 1: ("b", "uv://127.0.0.1:1001")}
    equal(members(store), expected)
    ours[0].ok("leave", MS)
    del expected[0]
    equal(members(store), expected)
    assert not store.delete_key("names/0") and not store.delete_key("addrs/a"), "it left something"
    for one in ours:
        one.close()


def torch_agent_finds_a_worker():
    server = torch_server()
    ours = [Member(server.port) for _ in range(2)]
    ours[0].join(1, "a")
    ours[1].join(3, "d-e")  # torch cannot read such a name
    worker = subprocess.Popen([WORKER], stdout=subprocess.DEVNULL,
                              env=dict(os.environ, TENREC_INIT_METHOD=f"tcp://127.0.0.1:{server.port}"))
    try:
        call_from_torch(torch_part(server.port))
    finally:
        worker.kill()
        worker.wait(SECONDS)
    ours[0].ok("leave", MS)
    equal(torch_part(server.port).get(LIST).decode(), "worker0-0,torch-1-5,")  # torch's members stay
    for one in ours:
        one.close()


def call_from_torch(store):
    store.wait(["addrs/worker0"])
    with _group_membership_management(store, "torch-1", True):
        agent = rpc.TensorPipeAgent(store, "torch-1", 5, None, rpc.TensorPipeRpcBackendOptions(), {}, [])
        autograd._init(5)
        rpc.api._init_rpc_states(agent)
        infos = {(info.name, info.id) for info in agent.get_worker_infos()}
    equal(infos, {("worker0", 0), ("a", 1), ("torch-1", 5)})
    try:
        rpc.rpc_sync("worker0", operator.add, (1, 2), timeout=SECONDS)
        text = "it has Python's functions"
    except RuntimeError as reason:
        text = str(reason)
    assert "the sender is no Tenrec worker" in text, text


def tenrec_worker_waits_while_torch_joins():
    server = torch_server()
    one = Member(server.port)
    store = torch_part(server.port)
    with _group_membership_management(store, "t", True):
        line = one.ask("reserve", 0, "a", 200)
        assert "ETIMEDOUT" in line and "'Token_for_t_join'" in line, line
    one.join(0, "a")
    with _group_membership_management(store, "t", False):
        line = one.ask("leave", 200)
        assert "ETIMEDOUT" in line and "'Token_for_t_leave'" in line, line
    one.ok("leave", MS)
    one.close()


def torch_waits_while_a_tenrec_worker_joins():
    server = torch_server()
    one = Member(server.port)
    one.reserve(0, "a")
    theirs = Joiner(server.port, "t", lambda: members(torch_part(server.port)))
    assert theirs.waits(), "torch did not wait"
    equal(set(theirs.said.splitlines()), {b"waits"})
    one.ok("join", "uv://127.0.0.1:1000")
    equal(theirs.finish(), {0: ("a", "uv://127.0.0.1:1000")})
    one.close()


def torch_goes_on_when_a_tenrec_worker_died_during_its_join():
    server = torch_server()
    dead = Member(server.port, lease_ms=100)
    dead.reserve(0, "a")
    theirs = Joiner(server.port, "t")
    assert theirs.waits(), "torch did not wait"
    dead.kill()
    one = Member(server.port, lease_ms=100)
    one.join(0, "a")
    theirs.finish()
    one.close()


def both_change_the_list(port):
    """Torch reads and then writes: what came between would be lost."""
    store = torch_part(port)

    def add():
        store.set(LIST, store.get(LIST).decode() + f"t{number}-{number},")

    ours = [Member(port) for _ in range(2)]
    ours[0].join(0, "a")
    for number in range(100, 120):
        theirs = Joiner(port, f"t{number}", add)
        ours[1].join(1, "b")
        theirs.finish()
        theirs = Joiner(port, f"u{number}")
        ours[1].ok("leave", MS)
        theirs.finish()
    equal(store.get(LIST).decode(), "a-0," + "".join(f"t{number}-{number}," for number in range(100, 120)))
    equal(store.get(TOKEN), b"")
    for one in ours:
        one.close()


def both_change_the_list_in_torch_server():
    server = torch_server()
    both_change_the_list(server.port)


def both_change_the_list_in_our_server():
    server = Member()
    both_change_the_list(int(server.ok("serve")))
    server.close()


def static_torch_workers_do_not_mix_with_tenrec_workers():
    server = torch_server()
    one = Member(server.port)
    equal(torch_part(server.port).compare_set("rpcIsStaticGroup", "", "true"), b"true")
    line = one.ask("reserve", 0, "a", 1000)
    assert "EGROUP" in line and "mixes static and dynamic" in line, line
    one.close()


CASES = [
    torch_finds_our_members,
    torch_agent_finds_a_worker,
    tenrec_worker_waits_while_torch_joins,
    torch_waits_while_a_tenrec_worker_joins,
    torch_goes_on_when_a_tenrec_worker_died_during_its_join,
    both_change_the_list_in_torch_server,
    both_change_the_list_in_our_server,
    static_torch_workers_do_not_mix_with_tenrec_workers,
]

failed = run_cases(CASES, "group_torch_group")
sys.stdout.flush()
# Torch's agent would wait for members that are none of its kind.
os._exit(1 if failed else 0)
