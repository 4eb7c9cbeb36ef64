# SPDX-License-Identifier: Apache-2.0
"""Our stores against those of PyTorch: its client with our server, our client
with its server, and one file for both. Prints TAP; skips without torch."""

import datetime
import os
import subprocess
import sys
import tempfile
import threading
import time

try:
    import torch.distributed as dist
except ImportError:
    print("1..0 # SKIP python3-torch is not installed")
    sys.exit(0)

from cases import run_cases  # pylint: disable=wrong-import-position

TOOL = sys.argv[1]
LIMIT = datetime.timedelta(seconds=20)


class Tool:
    """The Tenrec side: a process that executes orders."""

    def __init__(self):
        self.process = subprocess.Popen([TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()

    def hear(self):
        return self.process.stdout.readline().rstrip("\n")

    def ask(self, *words):
        self.tell(*words)
        return self.hear()

    def ok(self, *words):
        line = self.ask(*words)
        assert line.startswith("ok "), f"{words}: {line}"
        return line[3:]

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(20) == 0, "the tool failed"


def equal(got, expected):
    assert got == expected, f"got {got!r}, expected {expected!r}"


def talk(theirs, ours):
    """Each side reads what the other wrote, by every request both know."""
    theirs.set("from_torch", "t")
    equal(ours.ok("get", "from_torch"), "t")
    ours.ok("set", "from_us", "u")
    equal(theirs.get("from_us"), b"u")
    equal(theirs.add("n", 5), 5)
    equal(ours.ok("add", "n", -7), "-2")
    equal(theirs.add("n", 1), -1)
    equal(theirs.get("n"), b"-1")
    equal(ours.ok("check", "n"), "1")
    equal(ours.ok("check", "nowhere"), "0")
    assert "nowhere" in ours.ask("get", "nowhere", 20)
    assert "ETIMEDOUT" in ours.ask("wait", "nowhere", 20)
    assert "ETIMEDOUT" in ours.ask("round", "nowhere", 20)
    ours.ok("round", "n", 20)


def swap(theirs, ours):
    """Not in the file store of 1.13."""
    equal(ours.ok("swap", "cs", "x", "y"), "x")
    equal(theirs.compare_set("cs", "", "first"), b"first")
    equal(ours.ok("swap", "cs", "-", "second"), "first")
    equal(ours.ok("swap", "cs", "first", "third"), "third")
    equal(theirs.compare_set("cs", "third", "fourth"), b"fourth")
    equal(ours.ok("get", "cs"), "fourth")


def remove(theirs, ours):
    keys = theirs.num_keys()
    equal(ours.ok("count"), str(keys))
    theirs.set("gone", "1")
    ours.ok("wait", "gone", 20000)  # torch's set has no answer
    equal(ours.ok("delete", "gone"), "1")
    equal(ours.ok("delete", "gone"), "0")
    ours.ok("set", "gone", "2")
    equal(theirs.delete_key("gone"), True)
    equal(ours.ok("check", "gone"), "0")


def wait_for_each_other(theirs, ours):
    threading.Timer(0.05, lambda: theirs.set("late_t", "1")).start()
    ours.ok("wait", "late_t", 20000)
    got = []
    waiter = threading.Thread(target=lambda: got.append(theirs.get("late_u")))
    waiter.start()
    ours.ok("set", "late_u", "x")
    waiter.join(20)
    equal(got, [b"x"])


def torch_client_uses_our_server():
    ours = Tool()
    port = int(ours.ok("serve"))
    ours.ok("open", f"tcp://127.0.0.1:{port}")
    theirs = dist.TCPStore("127.0.0.1", port, None, False, timeout=LIMIT)
    talk(theirs, ours)
    swap(theirs, ours)
    remove(theirs, ours)
    wait_for_each_other(theirs, ours)
    view = dist.PrefixStore("addrs", dist.PrefixStore("rpc_prefix_0", theirs))
    view.set("w1", "uv://x")
    equal(ours.ok("get", "rpc_prefix_0/addrs/w1"), "uv://x")
    # The key of torch's constructor stands without the slash that keys get.
    counted = dist.TCPStore("127.0.0.1", port, 1, False, timeout=LIMIT)
    equal(ours.ok("check", "init/"), "0")
    del view, theirs, counted
    ours.close()


def our_client_uses_torch_server():
    ours = Tool()
    theirs = dist.TCPStore("127.0.0.1", 0, None, True, timeout=LIMIT, wait_for_workers=False)
    ours.ok("open", f"tcp://127.0.0.1:{theirs.port}")
    talk(theirs, ours)
    swap(theirs, ours)
    remove(theirs, ours)
    wait_for_each_other(theirs, ours)
    ours.close()


def torch_server_counts_us_as_worker():
    ours = Tool()
    # A port that is free now: torch reports its own only when all have joined.
    finder = dist.TCPStore("127.0.0.1", 0, None, True, timeout=LIMIT, wait_for_workers=False)
    port = finder.port
    del finder
    # The constructor blocks all of Python, so the port is reported before.
    ours.tell("open", f"tcp://127.0.0.1:{port}")
    ours.tell("init")
    start = time.monotonic()
    theirs = dist.TCPStore("127.0.0.1", port, 2, True, timeout=LIMIT)
    # Torch goes on in silence when its limit is over.
    assert time.monotonic() - start < LIMIT.total_seconds(), "we were not counted"
    assert ours.hear().startswith("ok ")
    assert ours.hear().startswith("ok ")
    del theirs
    ours.close()


def our_client_hears_when_torch_server_goes():
    ours = Tool()
    theirs = dist.TCPStore("127.0.0.1", 0, None, True, timeout=LIMIT, wait_for_workers=False)
    ours.ok("open", f"tcp://127.0.0.1:{theirs.port}")
    ours.ok("set", "k", "v")
    del theirs
    assert "EPEER_LOST" in ours.ask("get", "k", 20000)
    ours.close()


def one_file_serves_both():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store")
        ours = Tool()
        theirs = dist.FileStore(path, 2)
        theirs.set_timeout(LIMIT)
        ours.ok("file", path, 2)
        talk(theirs, ours)
        wait_for_each_other(theirs, ours)
        ours.ok("set", "gone", "2")
        equal(theirs.delete_key("gone"), True)
        equal(ours.ok("check", "gone"), "0")
        ours.ok("close")
        assert os.path.exists(path), "removed while torch still has it"
        del theirs
        assert not os.path.exists(path), "not removed by the last"
        ours.close()


CASES = [
    torch_client_uses_our_server,
    our_client_uses_torch_server,
    torch_server_counts_us_as_worker,
    our_client_hears_when_torch_server_goes,
    one_file_serves_both,
]

sys.exit(1 if run_cases(CASES, "store_torch") else 0)
