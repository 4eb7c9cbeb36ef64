# SPDX-License-Identifier: Apache-2.0
"""transport_test.py WHY - the transport `tenrec` of torch.distributed._transport, in one process."""
import asyncio
import contextlib
import gc
import json
import threading
import unittest.mock
import weakref
from datetime import timedelta

from transports import LIMIT_S, made, pair, refused, remote  # first: it makes torch.distributed._transport available

import torch
from cases import contains, equal, main, true, until
from torch.distributed._transport import (Memory, MemoryView, MutableMemoryView, RemoteBuffer, Transport, _registry, available_transports,
                                          new_transport, register_transport, wait_all)

import tenrec_torch.transport
from tenrec_torch._transport_memory import Registration, TenrecRemoteBuffer
from tenrec_torch._transport_work import TenrecWork
from tenrec_torch.transport import TenrecTransport


def same(a, b):
    true(torch.equal(a, b), f"{a} is {b}")


# ---- what each transport does


def transport_writes_and_reads_views_by_descriptors_that_were_bytes():
    with pair() as (first, second):
        source, target, back = torch.arange(4096, dtype=torch.int32), torch.zeros(4096, dtype=torch.int32), torch.zeros(4096, dtype=torch.int32)
        memory, theirs = first.register_memory(source), second.register_memory(target)
        for kind, o in (Memory, memory), (MemoryView, memory.to_view()), (MutableMemoryView, memory.to_mutable_view()), (
                RemoteBuffer, theirs.to_remote_buffer()), (Transport, first):
            true(isinstance(o, kind), f"{o} is a {kind.__name__}")
        true(not isinstance(memory.to_view(), MutableMemoryView), "a view is not writable")
        equal(memory.to_view().size(), 16384)
        equal(first.write(memory.to_view(), remote(theirs)), 0)
        same(target, source)
        equal(first.read(first.register_memory(back).to_mutable_view(), remote(theirs)), 0)
        same(back, source)


def transport_has_memory_of_each_type_and_shape():
    with pair() as (first, second):
        for dtype in [torch.bool, torch.int8, torch.float16, torch.bfloat16, torch.float64, torch.complex64]:
            for shape in [(), (1,), (3, 5), (2, 1, 4)]:
                source = (torch.rand(shape) * 8).to(dtype)
                target = torch.zeros(shape, dtype=dtype)
                first.write(first.register_memory(source).to_view(), remote(second.register_memory(target)))
                same(target, source)
        grown = torch.ones(4, requires_grad=True)
        target = torch.zeros(9)
        first.write(first.register_memory(grown).to_view(), remote(second.register_memory(target[2:6])))
        equal(target.tolist(), [0, 0, 1, 1, 1, 1, 0, 0, 0])


def transport_view_is_a_range_and_the_remote_side_its_beginning():
    with pair() as (first, second):
        source, target = torch.arange(64, dtype=torch.uint8), torch.zeros(64, dtype=torch.uint8)
        memory, theirs = first.register_memory(source), second.register_memory(target)
        first.write(memory.to_view(16, 16), remote(theirs))
        same(target[:16], source[16:32])
        equal(target[16:].sum().item(), 0)
        equal((memory.to_view(60).size(), memory.to_view(64).size(), memory.to_view(length=3).size()), (4, 0, 3))
        for offset, length in (65, None), (-1, 1), (60, 5), (0, -1), (0, 65):
            refused(ValueError, "64 bytes", memory.to_view, offset, length)
        refused(TypeError, "", memory.to_view, 1.5)
        refused(TypeError, "", memory.to_mutable_view, 0, "1")
        again = first.register_memory(source)
        true(again.reused_registration() and remote(again) == remote(memory), "the same memory has one registration")


def transport_view_of_no_bytes_moves_none():
    with pair() as (first, second):
        memory, theirs = first.register_memory(torch.ones(4)), second.register_memory(torch.zeros(4))
        work = first.write(memory.to_view(16), remote(theirs), async_op=True)
        true(work.is_completed() and work.wait(), "it is complete at once")
        equal(first.read(memory.to_mutable_view(0, 0), remote(theirs), timeout=0), 0)


def transport_memory_may_be_named_before_bind_and_registered_after_connect():
    first, second = made(), made()
    target = torch.zeros(8)
    buffer = remote(second.register_memory(target))
    records = first.bind(), second.bind()
    first.connect(records[1])
    second.connect(records[0])
    first.write(first.register_memory(torch.ones(8)).to_view(), buffer)
    same(target, torch.ones(8))
    first.close()
    second.close()


def transport_endpoints_share_the_workers_of_the_process():
    with pair() as (first, second), pair() as (third, fourth):
        before = threading.active_count()
        with pair() as (fifth, sixth):
            target = torch.zeros(4)
            fifth.write(fifth.register_memory(torch.ones(4)).to_view(), remote(sixth.register_memory(target)))
            same(target, torch.ones(4))
            equal(threading.active_count(), before)
        foreign = remote(fourth.register_memory(torch.zeros(4)))
        refused(ValueError, "not that of the connected peer", first.write, first.register_memory(torch.ones(4)).to_view(), foreign)
        true(third.connected() and second.connected(), "the others stay")


# ---- work


def work_waits_more_than_once_and_its_future_is_empty():
    with pair() as (first, second):
        source, target = torch.arange(1 << 20), torch.zeros(1 << 20, dtype=torch.int64)
        memory, theirs = first.register_memory(source), remote(second.register_memory(target))
        work = first.write(memory.to_view(), theirs, async_op=True)
        true(work.wait() and work.wait(timedelta(seconds=30)), "each wait returns True")
        equal((work.get_future().wait(), work.get_future().wait(), work.result()), ([], [], []))
        true(work.is_completed() and work.is_success() and work.exception() is None, "the work is well")
        same(target, source)
        waiting = first.read(memory.to_mutable_view(), theirs, async_op=True)
        future = waiting.get_future()
        equal(future.wait(), [])
        work.synchronize()


def work_is_completed_without_a_loop_or_a_wait():
    with pair() as (first, second):
        memory, theirs = first.register_memory(torch.ones(1 << 18)), remote(second.register_memory(torch.zeros(1 << 18)))
        called = threading.Event()
        first.write(memory.to_view(), theirs, async_op=True).get_future().add_done_callback(lambda _: called.set())
        true(called.wait(60), "a thread of Tenrec ran the callback")


def work_is_awaited_in_a_batch():
    with pair() as (first, second):
        source, target = torch.arange(100), torch.zeros(100, dtype=torch.int64)
        memory, theirs = first.register_memory(source), remote(second.register_memory(target))
        back = first.register_memory(torch.zeros(100, dtype=torch.int64))

        async def use():
            await first.write_async(memory.to_view(), theirs, timeout=30)
            await first.read_async(back.to_mutable_view(), theirs)
            await wait_all(first.write(memory.to_view(0, 8 * n), theirs, async_op=True) for n in (50, 100))
            await wait_all([])
        asyncio.run(use())
        same(target, source)


def work_of_a_failed_transfer_raises_each_time():
    with pair() as (first, second):
        memory, gone = first.register_memory(torch.ones(4)), second.register_memory(torch.zeros(4))
        theirs = remote(gone)
        first.write(memory.to_view(), theirs)
        second.unregister_memory(gone)
        work = first.write(memory.to_view(), theirs, async_op=True)
        refused(RuntimeError, "ESTALE", work.wait)
        refused(RuntimeError, "ESTALE", work.wait)
        refused(RuntimeError, "ESTALE", work.get_future().wait)
        true(work.is_completed() and not work.is_success() and "ESTALE" in str(work.exception()), "it is complete, and has failed")
        refused(RuntimeError, "ESTALE", asyncio.run, first.read_async(memory.to_mutable_view(), theirs))


def work_that_times_out_stays_pending_and_keeps_its_buffers():
    work = TenrecWork((), 0.01)
    refused(TimeoutError, "goes on", work.wait)
    refused(TimeoutError, "goes on", work.wait, timedelta(microseconds=1))
    true(not work.is_completed() and work.exception() is None and not work.is_success(), "it is under way")
    waiting = [threading.Thread(target=work.wait, args=(timedelta(seconds=60),)) for _ in range(4)]
    for thread in waiting:
        thread.start()
    work.finish()
    for thread in waiting:
        thread.join()
    true(work.wait(), "it ended well")
    refused(ValueError, "finite", work.wait, timedelta(seconds=-1))


def work_outlives_a_waiter_that_was_canceled_and_its_loop():
    work = TenrecWork((), 30.0)

    async def give_up():
        task = asyncio.ensure_future(wait_all([work]))
        await asyncio.wait([task], timeout=0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return True
        return False
    true(asyncio.run(give_up()), "the waiter was canceled")
    true(not work.is_completed(), "the work was not")
    work.finish()
    equal(work.get_future().wait(), [])


# ---- refusals


def transport_refuses_what_it_cannot_register():
    transport = made(device="cpu")
    refused(TypeError, "expected a torch.Tensor", transport.register_memory, [1])
    refused(ValueError, "not contiguous", transport.register_memory, torch.ones(4, 4).t())
    refused(ValueError, "not contiguous", transport.register_memory, torch.ones(4, dtype=torch.complex64).conj())
    refused(ValueError, "not contiguous", transport.register_memory, torch.eye(3).to_sparse())
    refused(ValueError, "empty", transport.register_memory, torch.ones(0))
    refused(ValueError, "expected a tensor on cpu", transport.register_memory, torch.ones(2, device="meta"))
    refused(ValueError, "expected cpu or cuda", made().register_memory, torch.ones(2, device="meta"))
    refused(RuntimeError, "failed to create transport", made, device="meta")
    transport.close()


def transport_refuses_transfers_that_do_not_fit():
    with pair() as (first, second):
        tensor = torch.ones(8)
        memory, theirs = first.register_memory(tensor), second.register_memory(torch.zeros(4))
        refused(ValueError, "the memory of the peer 16", first.write, memory.to_view(), remote(theirs))
        refused(TypeError, "MutableMemoryView", first.read, memory.to_view(0, 16), remote(theirs))
        refused(TypeError, "of this transport", first.write, theirs.to_view(), remote(theirs))
        refused(TypeError, "of this transport", first.write, tensor, remote(theirs))
        refused(TypeError, "no descriptor", first.write, memory.to_view(0, 16), theirs)
        refused(ValueError, "connected peer", first.write, memory.to_view(0, 16), remote(memory))
        view = memory.to_view(0, 16)
        tensor.resize_(1 << 16)
        refused(RuntimeError, "resized", first.write, view, remote(theirs))
        unconnected = made()
        lone = unconnected.register_memory(torch.ones(1))
        refused(ValueError, "connected peer", unconnected.write, lone.to_view(), remote(theirs))
        unconnected.close()


def transport_refuses_a_wrong_key():
    with pair() as (first, second):
        target = torch.zeros(4)
        fields = json.loads(second.register_memory(target).to_remote_buffer().serialize())
        fields["fields"]["key"] = "AAAAAAAAAAAAAAAAAAAAAA=="
        forged = TenrecRemoteBuffer.deserialize(json.dumps(fields).encode())
        refused(RuntimeError, "ESTALE", first.write, first.register_memory(torch.ones(4)).to_view(), forged)
        equal(target.sum().item(), 0)


def transport_refuses_records_that_are_none():
    transport, other = made(), made()
    record = transport.bind()
    true(isinstance(record, bytes) and len(record) <= 1024, "a record of at most 1 KiB")
    equal(transport.bind(), record)
    fields = json.loads(record)
    for bad in [b"", b"\x00\xff", b"[]", b"{}", record[:-1], record + b" " * 1024, json.dumps(dict(fields, version=1)).encode(),
                json.dumps(dict(fields, link=1)).encode(), json.dumps(dict(fields, link="!")).encode(), json.dumps(dict(fields, more=1)).encode()]:
        refused(ValueError, "no record", other.connect, bad)
    refused(ValueError, "no record", other.connect, json.dumps(dict(fields, process="other", link="AAAA")).encode())
    refused(TypeError, "expected the bytes", other.connect, "text")
    refused(ValueError, "of the transport itself", transport.connect, record)
    true(not other.connected(), "no peer")
    other.connect(record)
    true(other.connected(), "a peer")
    refused(RuntimeError, "already connected", other.connect, record)
    refused(ValueError, "at '127.0.0.1'", new_transport("tenrec", host="127.0.0.2").bind)
    other.close()
    true(not other.connected(), "closed")
    transport.close()


def transport_refuses_limits_that_are_none_before_it_begins():
    with pair() as (first, second):
        memory, theirs = first.register_memory(torch.ones(4)), second.register_memory(torch.zeros(4))
        calls = [lambda t: first.write(memory.to_view(), remote(theirs), timeout=t), lambda t: first.register_memory(torch.ones(1), timeout=t),
                 lambda t: first.read(memory.to_mutable_view(), remote(theirs), async_op=True, timeout=t), lambda t: first.bind(timeout=t),
                 lambda t: first.connect(b"", timeout=t), lambda t: first.unregister_memory(memory, timeout=t), lambda t: first.close(timeout=t),
                 lambda t: memory.to_remote_buffer(timeout=t), lambda t: asyncio.run(first.close_async(timeout=t)),
                 lambda t: asyncio.run(first.write_async(memory.to_view(), remote(theirs), timeout=t))]
        for call in calls:
            for limit in -1, float("nan"), float("inf"):
                refused(ValueError, "finite", call, limit)
        equal(first.write(memory.to_view(), remote(theirs)), 0)
        for limit in -1.0, float("nan"):
            contains(str(refused(RuntimeError, "failed to create", made, timeout=limit).__cause__), "finite")
        contains(str(refused(RuntimeError, "failed to create", made, timeout=None).__cause__), "expected seconds")


# ---- the end of memory, and of transports


def memory_that_is_unregistered_ends_its_handles_views_and_descriptors():
    with pair() as (first, second):
        tensor = torch.ones(4)
        memory, alias = second.register_memory(tensor), second.register_memory(tensor)
        view, theirs = alias.to_view(), remote(memory)
        own = first.register_memory(torch.zeros(4))
        first.read(own.to_mutable_view(), theirs)
        refused(TypeError, "not registered by this transport", first.unregister_memory, memory)
        refused(TypeError, "not registered by this transport", second.unregister_memory, tensor)
        second.unregister_memory(memory)
        second.unregister_memory(memory)
        second.unregister_memory(alias)
        for use in alias.to_view, memory.to_mutable_view, memory.to_remote_buffer, lambda: second.write(view, remote(own)):
            refused(RuntimeError, "unregistered", use)
        refused(RuntimeError, "ESTALE", first.read, own.to_mutable_view(), theirs)
        again = second.register_memory(tensor)
        first.read(own.to_mutable_view(), remote(again))
        second.unregister_memory(memory)
        first.read(own.to_mutable_view(), remote(again))


def memory_of_two_endpoints_ends_at_each_alone():
    with pair() as (first, second), pair() as (third, fourth):
        target = torch.zeros(4)
        at_second, at_fourth = second.register_memory(target), fourth.register_memory(target)
        source, buffers = torch.ones(4), (remote(at_second), remote(at_fourth))
        first.write(first.register_memory(source).to_view(), buffers[0])
        third.write(third.register_memory(source).to_view(), buffers[1])
        second.unregister_memory(at_second)
        source.fill_(2)
        refused(RuntimeError, "ESTALE", first.write, first.register_memory(source).to_view(), buffers[0])
        third.write(third.register_memory(source).to_view(), buffers[1])
        same(target, source)


def memory_is_released_after_its_end_and_not_before():
    with pair() as (first, second):
        tensor = torch.ones(1 << 16)
        gone = weakref.ref(tensor)
        memory = first.register_memory(tensor)
        theirs = remote(memory)
        own = second.register_memory(torch.zeros(1 << 16))
        del tensor
        gc.collect()
        second.read(own.to_mutable_view(), theirs)
        first.unregister_memory(memory)
        del memory
        gc.collect()
        true(gone() is None, "the tensor is released")


def transport_that_is_closed_refuses_all_but_a_further_close():
    with pair() as (first, second):
        memory, theirs = first.register_memory(torch.ones(4)), second.register_memory(torch.zeros(4))
        own = remote(memory)
        first.close()
        first.close()
        for use in [first.bind, lambda: first.connect(second.bind()), lambda: first.register_memory(torch.ones(1)),
                    lambda: first.unregister_memory(memory), lambda: first.write(memory.to_view(), remote(theirs)), memory.to_view]:
            refused(RuntimeError, "", use)
        refused(RuntimeError, "ESTALE", second.read, theirs.to_mutable_view(), own)
        asyncio.run(second.close_async(timeout=30))
        refused(RuntimeError, "closed", second.bind)
    with made() as third:
        third.register_memory(torch.ones(1))
    refused(RuntimeError, "closed", third.bind)


# ---- memory of devices, in the place of which there is memory of the host here


class Staged(Registration):
    """Memory whose copies can be held, and which notes what they have waited for."""

    gate = threading.Event()
    seen = []

    def __init__(self, tensor, number):
        super().__init__(tensor, number)
        self.device, self.staged, self.host = "cuda", True, torch.full((self.length,), 99, dtype=torch.uint8)

    def queued(self):
        thread = threading.current_thread()

        class Event:
            @staticmethod
            def synchronize():
                Staged.seen.append(thread)
        return Event()

    def _copy(self, *args):
        if self.staged:
            Staged.gate.wait()
        super()._copy(*args)


@contextlib.contextmanager
def staged_pair():
    Staged.gate.set()
    Staged.seen.clear()
    with unittest.mock.patch.object(tenrec_torch.transport, "Registration", Staged), pair() as both:
        yield both


def transport_copies_memory_of_devices_at_both_ends():
    with staged_pair() as (first, second):
        source, target, back = torch.arange(64), torch.zeros(64, dtype=torch.int64), torch.zeros(64, dtype=torch.int64)
        theirs = remote(second.register_memory(target))
        first.write(first.register_memory(source).to_view(), theirs)
        same(target, source)
        equal(Staged.seen[0], threading.current_thread())  # the copy waits for what the caller has queued
        target += 1
        first.read(first.register_memory(back).to_mutable_view(), theirs)
        same(back, source + 1)


def transport_unregister_waits_for_a_copy_to_the_device():
    with staged_pair() as (first, second):
        source, target = torch.arange(64), torch.zeros(64, dtype=torch.int64)
        theirs = second.register_memory(target)
        name = remote(theirs)
        plain = first.register_memory(source)
        plain._registration.staged, plain._registration.host = False, plain._registration.bytes
        Staged.gate.clear()
        work = first.write(plain.to_view(), name, async_op=True)
        try:
            until(lambda: theirs._registration._copying.locked(), "the owner copies")
            refused(TimeoutError, "has not ended", second.unregister_memory, theirs, timeout=0.05)
        finally:
            Staged.gate.set()
        work.wait(timedelta(seconds=LIMIT_S))
        second.unregister_memory(theirs)
        same(target, source)
        refused(RuntimeError, "ESTALE", first.write, plain.to_view(), name)


# ---- the registry, and descriptors


def registry_knows_the_transport():
    true("tenrec" in available_transports(), f"tenrec is in {available_transports()}")
    for name in "tenrec", "TENREC":
        transport = new_transport(name, "cpu")
        true(type(transport) is TenrecTransport and transport.device == torch.device("cpu"), "a transport for the host")
        transport.close()
    true(TenrecTransport.supported(), "supported")
    refused(ValueError, "already registered", register_transport, "tenrec", TenrecTransport)
    refused(ValueError, "tenrec", new_transport, "tenrek")
    before = _registry._registered_transports.copy()
    register_transport("Tenrec", TenrecTransport, replace=True)
    _registry._registered_transports.clear()
    _registry._registered_transports.update(before)


def descriptor_is_read_from_its_own_form_only():
    transport = made()
    data = transport.register_memory(torch.ones(4)).to_remote_buffer().serialize()
    equal(TenrecRemoteBuffer.deserialize(data).serialize(), data)
    frame = json.loads(data)
    equal((frame["version"], frame["backend"], set(frame["fields"])), (1, "tenrec", {"process", "endpoint", "memory", "length", "device", "key"}))
    true(b" " not in data, "no spaces")

    def with_field(name, value):
        return json.dumps(dict(frame, fields=dict(frame["fields"], **{name: value}))).encode()

    for bad in [b"", b"\xff", b"[]", b"{}", data[:-1], json.dumps(dict(frame, version=2)).encode(), json.dumps(dict(frame, version=True)).encode(),
                json.dumps(dict(frame, backend="nixl")).encode(), json.dumps(dict(frame, more=1)).encode(), with_field("more", 1),
                with_field("length", -1), with_field("length", True), with_field("length", "16"), with_field("process", 1), with_field("key", "*"),
                with_field("endpoint", 1.0), data.replace(b'"version":1', b'"version":1,"version":1'), data.replace(b'"length":16', b'"length":NaN')]:
        refused(ValueError, "", TenrecRemoteBuffer.deserialize, bad)
    refused(TypeError, "bytes", TenrecRemoteBuffer.deserialize, data.decode())
    transport.close()


if __name__ == "__main__":
    main({name: f for name, f in globals().items() if getattr(f, "__module__", "") == "__main__"}, ("transport_", "work_", "memory_", "registry_", "descriptor_"))
