# SPDX-License-Identifier: Apache-2.0
"""package_test.py - promises of tenrec_torch beyond torch's suites."""
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from unittest import mock

import numpy
import torch
import torch.distributed.rpc as rpc
from torch.testing._internal.dist_utils import dist_init, worker_name
from torch.testing._internal.distributed.rpc.rpc_agent_test_fixture import RpcAgentTestFixture

import tenrec_torch
from fixtures import needs_tensorpipe

# A worker in its own interpreter, as of users: argv is store, rank, world size.
PROGRAM = """
import sys, threading
import torch.distributed.rpc as rpc, tenrec_torch
rpc.init_rpc("worker" + sys.argv[2], backend=rpc.BackendType.TENREC, rank=int(sys.argv[2]),
             world_size=int(sys.argv[3]),
             rpc_backend_options=tenrec_torch.TenrecRpcBackendOptions(init_method="file://" + sys.argv[1]))
print("here", flush=True)
"""
BURSTS = 200
EXIT_LIMIT_S = 90  # the import of torch alone takes seconds, on a busy machine many


def echo(x):
    return x


def add_to_first(*tensors):
    tensors[0].add_(100)  # changes the others, which share the storage
    return tensors


def filled(value):
    return torch.full((1 << 19,), value)


def hollow():
    x = torch.ones(4)
    x.storage().resize_(0)  # as a sharded model does with its parameters
    return x


held = threading.Event()


taken = threading.Semaphore(0)


def take(x):
    taken.release()
    return float(x[0])


begun = []


def begin(i):
    begun.append(i)


def begun_so_far():
    return begun


started = threading.Event()


def start():
    started.set()


def echo_once_started(x):
    started.wait(EXIT_LIMIT_S)
    return x


def release():
    held.set()


def hold():
    held.wait(EXIT_LIMIT_S)


def elsewhere():
    return torch.empty(3, device="meta")  # any device but the CPU


class TenrecPackageTest(RpcAgentTestFixture):
    @property
    def world_size(self):
        return 2

    def peer(self):
        return worker_name(1 - self.rank)

    def init(self, backend, options):
        rpc.init_rpc(worker_name(self.rank), backend=backend, rank=self.rank, world_size=2,
                     rpc_backend_options=options)

    @needs_tensorpipe
    def test_import_leaves_the_default_backend_as_it_was(self):
        rpc.init_rpc(worker_name(self.rank), rank=self.rank, world_size=2,
                     rpc_backend_options=rpc.TensorPipeRpcBackendOptions(init_method=self.init_method))
        self.assertIsInstance(rpc.api._get_current_rpc_agent(), rpc.TensorPipeAgent)
        self.assertEqual(rpc.rpc_sync(self.peer(), echo, args=(self.rank,)), self.rank)
        rpc.shutdown()

    @needs_tensorpipe
    def test_mistake_in_our_config_is_nothing_to_another_backend(self):
        os.environ["TENREC_CONFIG"] = "/no/such/file.yaml"
        self.test_import_leaves_the_default_backend_as_it_was()

    def test_failed_init_leaves_no_agent(self):
        def fails(agent):
            started(agent)
            raise RuntimeError("on purpose")
        started = rpc.api._init_rpc_states
        with mock.patch.object(rpc.api, "_init_rpc_states", fails):
            with self.assertRaisesRegex(RuntimeError, "on purpose"):
                self.init(rpc.BackendType.TENREC, self.rpc_backend_options)
        self.assertFalse(rpc.api._is_current_rpc_agent_set())

    def test_no_timeout_at_all_ends_gracefully(self):
        self.init(rpc.BackendType.TENREC, tenrec_torch.TenrecRpcBackendOptions(
            init_method=self.tcp_store(), rpc_timeout=0))
        if self.rank == 1:
            time.sleep(0.2)  # the other rank waits for this one
        rpc.api._get_current_rpc_agent().join(shutdown=True)
        rpc.shutdown(graceful=False)

    def test_no_timeout_waits_for_a_late_worker_in_each_store(self):
        for n, url in enumerate([self.init_method, self.tcp_store()]):
            waits = f"{self.file_name}.waits.{n}"
            meet = tenrec_torch._backend._meet

            def meet_late(*args):
                if self.rank == 0:
                    with open(waits, "w", encoding="utf-8"):
                        pass
                while not os.path.exists(waits):
                    time.sleep(0.01)
                return meet(*args)
            with mock.patch.object(tenrec_torch._backend, "_meet", meet_late):
                self.init(rpc.BackendType.TENREC, rpc.TensorPipeRpcBackendOptions(init_method=url, rpc_timeout=0))
            self.assertEqual(rpc.get_rpc_timeout(), 0)
            self.assertEqual(rpc.rpc_sync(self.peer(), echo, args=(self.rank,)), self.rank)
            rpc.shutdown()

    def test_store_is_opened_without_libuv_where_torch_lacks_it(self):
        asked = []

        def init(answer):
            asked.append(os.environ.get("USE_LIBUV"))
            if asked[-1] != "0":
                raise RuntimeError("use_libuv was requested but PyTorch was built without libuv support, ...")
            return answer
        with mock.patch.dict(os.environ):
            os.environ.pop("USE_LIBUV", None)
            self.assertEqual(tenrec_torch._rendezvous.open_without_libuv(init, 5), 5)
            self.assertEqual(asked, [None, "0"])
            self.assertNotIn("USE_LIBUV", os.environ)
            os.environ["USE_LIBUV"] = "1"  # of the caller: stays in force
            with self.assertRaisesRegex(RuntimeError, "use_libuv"):
                tenrec_torch._rendezvous.open_without_libuv(init, 5)
            self.assertEqual(asked[2:], ["1"])

    @dist_init
    def test_views_of_one_storage_stay_views_of_one_storage(self):
        for n in [8, 1 << 18, 1 << 23]:  # small; copied for a receiver that maps the copy; 32 MiB
            whole = torch.arange(float(n))
            views = [whole, whole[n // 4:], whole[:-n // 4].view(torch.int32)]
            back = rpc.rpc_sync(self.peer(), add_to_first, args=views)
            self.assertEqual(back[0], whole + 100)
            self.assertEqual(back[1], whole[n // 4:] + 100)
            self.assertEqual(back[2], (whole[:-n // 4] + 100).view(torch.int32))
            self.assertEqual(whole[0], 0)  # the receiver wrote to its copy
            self.assertEqual(len({t.storage().data_ptr() for t in back}), 1)
            back[0].add_(1)
            self.assertEqual(back[1][0], n // 4 + 101)

    @dist_init
    def test_pickles_of_each_size_arrive_as_they_were_sent(self):
        for size in [0, 1 << 10, (1 << 16) - 100, 1 << 16, (1 << 20) + 1, 20 << 20]:  # the receiver keeps large ones
            sent = os.urandom(size)
            back, tensor = rpc.rpc_sync(self.peer(), echo, args=((sent, torch.arange(3)),))
            self.assertTrue(back == sent)  # assertEqual of torch compares each byte as a number
            self.assertEqual(tensor, torch.arange(3))

    @dist_init
    def test_copies_of_small_parts_share_nothing(self):
        whole = torch.zeros(1 << 20)
        parts = [whole[i << 17:(i + 1) << 17] for i in range(8)]  # each is sent as a copy
        back = rpc.rpc_sync(self.peer(), add_to_first, args=parts)
        self.assertEqual([float(t[0]) for t in back], [100.0] + [0.0] * 7)

    @dist_init
    def test_calls_begin_in_the_order_in_which_their_caller_made_them(self):
        if self.rank == 0:
            for burst in range(BURSTS):
                torch.futures.wait_all([rpc.rpc_async(self.peer(), begin, args=(2 * burst + i,)) for i in range(2)])
            got = rpc.rpc_sync(self.peer(), begun_so_far)
            self.assertEqual(sorted(got), list(range(2 * BURSTS)))
            # No promise of the backend, but what programs are used to: without an order it is up to every second burst.
            self.assertLess(sum(a > b for a, b in zip(got[::2], got[1::2])), BURSTS / 4)

    @dist_init
    def test_timeout_that_has_passed_ends_the_call_at_once(self):
        for timeout, text in [(-5, "-5000"), (-0.0001, "-1"), (0.0001, "1"), (-1e30, "-1000000000000")]:
            with self.assertRaisesRegex(RuntimeError, rf"more than set timeout \({text} ms\)"):
                rpc.rpc_sync(self.peer(), time.sleep, args=(1,), timeout=timeout)
        self.assertEqual(rpc.rpc_sync(self.peer(), echo, args=(1,), timeout=1e30), 1)
        with self.assertRaisesRegex(RuntimeError, "nan"):
            rpc.rpc_sync(self.peer(), echo, args=(1,), timeout=float("nan"))

    @dist_init
    def test_answer_that_cannot_be_sent_fails_the_call(self):
        with self.assertRaisesRegex(RuntimeError, "answer cannot be sent: .*ends at byte 16 of a storage of 0"):
            rpc.rpc_sync(self.peer(), hollow)
        with self.assertRaisesRegex(RuntimeError, "ends at byte 16 of a storage of 0"):
            rpc.rpc_sync(self.peer(), echo, args=(hollow(),))
        self.assertEqual(rpc.rpc_sync(self.peer(), echo, args=(1,)), 1)

    @dist_init
    def test_callbacks_that_wait_get_their_answers_while_others_call(self):
        if self.rank == 0:
            waiting = [rpc.rpc_async(self.peer(), echo_once_started, args=(i,)).then(
                lambda f: rpc.rpc_sync(self.peer(), echo, args=(f.wait(),))) for i in range(20)]
            rpc.rpc_sync(self.peer(), start)
            self.assertEqual([f.wait() for f in waiting], list(range(20)))
            rpc.rpc_sync(self.peer(), release)
        while self.rank == 1 and not held.is_set():
            rpc.rpc_sync(self.peer(), echo, args=(0,))

    def test_callbacks_that_wait_fail_when_the_agent_is_shut_down(self):
        self.init(rpc.BackendType.TENREC, self.rpc_backend_options)
        over = self.file_name + ".over"
        if self.rank == 0:
            waiting = threading.Semaphore(0)

            def ask_for_ever(_):
                waiting.release()
                rpc.rpc_sync(self.peer(), hold, timeout=0)
            # A callback added to a complete future runs on this thread.
            failed = [rpc.rpc_async(self.peer(), echo_once_started, args=(i,)).then(ask_for_ever)
                      for i in range(6)]
            rpc.rpc_sync(self.peer(), start)
            for _ in failed:
                waiting.acquire()
            begin = time.monotonic()
            rpc.shutdown(graceful=False)
            self.assertLess(time.monotonic() - begin, 15)
            for f in failed:
                self.assertRaises(RuntimeError, f.wait)
            with open(over, "w", encoding="utf-8"):
                pass
        else:
            while not os.path.exists(over):
                time.sleep(0.01)
            held.set()
            rpc.shutdown(graceful=False)

    def test_backend_follows_from_the_options(self):
        self.init(None, self.rpc_backend_options)
        self.assertIsInstance(rpc.api._get_current_rpc_agent(), tenrec_torch._C.TenrecAgent)
        rpc.shutdown()

    def test_options_of_another_agent_are_refused(self):
        class Others(rpc.RpcBackendOptions):
            pass
        with self.assertRaisesRegex(TypeError, "TenrecRpcBackendOptions"):
            self.init(rpc.BackendType.TENREC, Others(init_method=self.init_method))

    def test_options_of_torch_are_taken_for_what_they_say(self):
        os.environ["TENREC_CONFIG"] = self.options["config"]
        self.init(rpc.BackendType.TENREC, rpc.TensorPipeRpcBackendOptions(
            init_method=self.init_method, num_worker_threads=27, rpc_timeout=99, _transports=["uv"]))
        info = rpc.api._get_current_rpc_agent().get_debug_info()
        self.assertEqual(int(info["agent.thread_pool_size"]), 27)
        self.assertEqual(rpc.get_rpc_timeout(), 99)
        self.assertEqual(rpc.rpc_sync(self.peer(), echo, args=(self.rank,)), self.rank)
        self.assertEqual(info["tensorpipe.not_used.transport.shm"], "the options do not list it")
        rpc.shutdown()

    def test_defaults_of_options_of_torch_yield_to_the_configuration(self):
        os.environ["TENREC_WORKER__RPC_TIMEOUT"] = "98s"
        os.environ["TENREC_WORKER__NUM_WORKER_THREADS"] = "26"
        self.init(rpc.BackendType.TENREC, rpc.TensorPipeRpcBackendOptions(init_method=self.init_method))
        info = rpc.api._get_current_rpc_agent().get_debug_info()
        self.assertEqual(int(info["agent.thread_pool_size"]), 26)
        self.assertEqual(rpc.get_rpc_timeout(), 98)
        rpc.shutdown()

    def test_plain_options_are_taken_for_what_they_say(self):
        self.init(rpc.BackendType.TENREC,
                  rpc.RpcBackendOptions(init_method=self.init_method, rpc_timeout=97))
        self.assertEqual(rpc.get_rpc_timeout(), 97)
        self.assertEqual(rpc.rpc_sync(self.peer(), echo, args=(self.rank,)), self.rank)
        rpc.shutdown()

    def test_device_maps_of_options_of_torch_are_checked(self):
        options = rpc.TensorPipeRpcBackendOptions(init_method=self.init_method)
        options.set_device_map("nobody", {"cpu": "cpu"})
        with self.assertRaisesRegex(ValueError, "invalid target node names"):
            self.init(rpc.BackendType.TENREC, options)

    def test_transports_of_torch_that_the_configuration_cannot_have_are_named(self):
        os.environ["TENREC_CONFIG"] = self.file_name + ".yaml"
        with open(os.environ["TENREC_CONFIG"], "w", encoding="utf-8") as f:
            f.write("backend: other\nbackends: { other: { plugin: tensorpipe } }\n")
        with self.assertRaisesRegex(ValueError, "_transports .* 'tensorpipe': .*'plugin' is missing"):
            self.init(rpc.BackendType.TENREC, rpc.TensorPipeRpcBackendOptions(
                init_method=self.init_method, _transports=["uv"]))

    def test_number_of_threads_and_timeout_are_taken(self):
        self.init(rpc.BackendType.TENREC, tenrec_torch.TenrecRpcBackendOptions(
            init_method=self.init_method, num_worker_threads=27, rpc_timeout=99))
        info = rpc.api._get_current_rpc_agent().get_debug_info()
        self.assertEqual(int(info["agent.thread_pool_size"]), 27)
        self.assertEqual(rpc.get_rpc_timeout(), 99)
        rpc.shutdown()

    def test_mistake_in_config_is_named_with_its_line(self):
        # Both ranks fail by themselves, before they wait for each other.
        with self.assertRaisesRegex(Exception, ":3:.*plugins"):
            self.init(rpc.BackendType.TENREC, tenrec_torch.TenrecRpcBackendOptions(
                init_method=self.init_method,
                config="backend: a\nbackends:\n  a: { plugins: tensorpipe }\n"))

    def test_unknown_backend_is_refused(self):
        with self.assertRaisesRegex(Exception, "nosuch"):
            self.init(rpc.BackendType.TENREC, tenrec_torch.TenrecRpcBackendOptions(
                init_method=self.init_method, backend="nosuch"))

    def test_group_without_a_size_is_refused_where_a_size_is_given(self):
        os.environ["WORLD_SIZE"] = "2"
        with self.assertRaisesRegex(ValueError, "without a world_size, while WORLD_SIZE is set"):
            rpc.init_rpc(worker_name(self.rank), backend=rpc.BackendType.TENREC, rank=self.rank,
                         rpc_backend_options=self.rpc_backend_options)

    @dist_init
    def test_tensor_that_is_not_on_the_cpu_is_refused(self):
        with self.assertRaisesRegex(RuntimeError, "only supports CPU tensors.*request has a tensor on meta"):
            rpc.rpc_sync(self.peer(), echo, args=(elsewhere(),))
        with self.assertRaisesRegex(RuntimeError, "Response device mapping is not available for meta"):
            rpc.rpc_sync(self.peer(), elsewhere)
        self.assertEqual(rpc.rpc_sync(self.peer(), echo, args=(1,)), 1)

    @dist_init
    def test_tensors_of_all_kinds_come_back_as_they_went(self):
        base = torch.arange(60.0).reshape(3, 4, 5)
        for x in [torch.tensor(7), torch.empty(0), torch.empty(3, 0, 2), base, base[1], base.transpose(0, 2),
                  base[:, ::2], base[0, 4:, 2:], base[3:, -1], base.expand(2, 3, 4, 5), torch.tensor([True, False]), torch.ones(3, dtype=torch.float16),
                  torch.ones(3, dtype=torch.bfloat16), torch.tensor([1 + 2j]), torch.ones(2, dtype=torch.int8),
                  torch.quantize_per_tensor(torch.ones(4), 0.5, 3, torch.quint8),
                  torch.eye(4).to_sparse(),
                  torch.arange(1 << 22, dtype=torch.int64)]:
            y = rpc.rpc_sync(self.peer(), echo, args=(x,))
            self.assertEqual((y.dtype, y.layout, y.shape), (x.dtype, x.layout, x.shape))
            self.assertEqual(y, x)

    @dist_init
    def test_received_tensor_may_be_written_and_outlives_the_message(self):
        x = torch.ones(1 << 20)
        kept = [rpc.rpc_sync(self.peer(), echo, args=(x * i,)) for i in range(8)]
        for i, y in enumerate(kept):
            y.add_(1)
            self.assertEqual(float(y.min()), i + 1)
            self.assertEqual(float(y.max()), i + 1)

    @dist_init
    def test_received_tensor_stays_unchanged_in_a_forked_child(self):
        y = rpc.rpc_sync(self.peer(), filled, args=(1,))
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write)
            os.read(read, 1)
            os._exit(0 if bool((y == 1).all()) else 1)
        y.zero_()
        del y
        for i in range(4):  # would reuse the memory of the first, if it were free
            rpc.rpc_sync(self.peer(), filled, args=(i + 2,))
        os.close(write)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        os.close(read)

    @dist_init
    def test_large_tensors_are_mapped_where_that_is_possible(self):
        for _ in range(3):
            rpc.rpc_sync(self.peer(), filled, args=(1,))
        info = rpc.api._get_current_rpc_agent().get_debug_info()
        mapped = [int(value) for key, value in info.items() if key.endswith(".tensors_mapped")]
        maps = not self.options["config"].endswith(("tcp.yaml", "ucx.yaml"))
        self.assertEqual(max(mapped, default=0) > 0, maps, mapped)

    @dist_init
    def test_messages_move_while_one_thread_keeps_python_to_itself(self):
        fifo = self.file_name + ".fifo"
        if self.rank == 0:
            os.mkfifo(fifo)
            fd = os.open(fifo, os.O_RDWR)
            # The thread that frees these waits for the GIL, which is held until the receiver has both.
            futs = [rpc.rpc_async(self.peer(), take, args=(torch.from_numpy(numpy.ones(8 << 20)),))
                    for _ in range(2)]
            ctypes.PyDLL(None).read(fd, ctypes.create_string_buffer(1), 1)
            self.assertEqual([fut.wait() for fut in futs], [1, 1])
            os.close(fd)
        else:
            for _ in range(2):
                taken.acquire()
            with open(fifo, "wb") as f:
                f.write(b"x")

    @dist_init
    def test_other_python_threads_run_while_one_waits(self):
        if self.rank != 0:
            return
        turns = 0
        fut = rpc.rpc_async(self.peer(), time.sleep, args=(2,))
        done = threading.Event()

        def wait():
            fut.wait()
            done.set()
        waiter = threading.Thread(target=wait)
        waiter.start()
        while not done.wait(0.001):
            turns += 1
        waiter.join()
        self.assertGreater(turns, 20)

    def start_program(self, text, rank):
        env = dict(os.environ, TP_SOCKET_IFNAME="lo", GLOO_SOCKET_IFNAME="lo")
        return subprocess.Popen([sys.executable, "-c", PROGRAM + text, self.file_name, str(rank), "2"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)

    def test_program_that_ends_without_shutdown_ends(self):
        if self.rank != 0:
            return
        programs = [self.start_program("", rank) for rank in range(2)]
        for p in programs:
            out, err = p.communicate(timeout=EXIT_LIMIT_S)
            self.assertEqual((p.returncode, out), (0, "here\n"), err)

    def test_fork_of_a_worker_ends_and_the_worker_goes_on(self):
        if self.rank != 0:
            return
        text = """
import atexit, os, torch
ref = rpc.remote("worker1", torch.add, args=(torch.ones(2), 1))
assert rpc.rpc_sync("worker1", len, args=("four",)) == 4
child = os.fork()
if child == 0:
    try:
        rpc.rpc_sync("worker1", len, args=("four",))
    except RuntimeError as error:
        atexit.register(print, str(error).partition(" and")[0], flush=True)
    sys.exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
assert ref.to_here().sum() == 4 and rpc.rpc_sync("worker1", len, args=("four",)) == 4
rpc.shutdown()
"""
        programs = [self.start_program(text, 0), self.start_program("rpc.shutdown()", 1)]
        for p, said in zip(programs, ["this process was forked from the worker 'worker0'\n", ""]):
            out, err = p.communicate(timeout=EXIT_LIMIT_S)
            self.assertEqual((p.returncode, out), (0, "here\n" + said), err)

    def test_program_that_dies_of_an_exception_ends(self):
        if self.rank != 0:
            return
        programs = [self.start_program("raise ValueError('on purpose')", rank) for rank in range(2)]
        for p in programs:
            _, err = p.communicate(timeout=EXIT_LIMIT_S)
            self.assertEqual(p.returncode, 1, err)
            self.assertIn("on purpose", err)

    def test_killed_worker_fails_open_calls_at_once(self):
        if self.rank != 0:
            return
        victim = self.start_program("threading.Event().wait()", 1)
        caller = self.start_program("""
import time
fut = rpc.rpc_async("worker1", time.sleep, args=(3600,))
print(rpc.rpc_sync("worker1", len, args=("four",)), flush=True)
begin = time.monotonic()
try:
    fut.wait()
except Exception as e:
    print(time.monotonic() - begin < 20, e, flush=True)
""", 0)
        self.assertEqual(caller.stdout.readline(), "here\n")
        self.assertEqual(caller.stdout.readline(), "4\n")
        victim.send_signal(signal.SIGKILL)
        out, err = caller.communicate(timeout=EXIT_LIMIT_S)
        victim.communicate()
        self.assertRegex(out, "^True .*", err)
