# SPDX-License-Identifier: Apache-2.0
"""tensor_test.py WHY - tensors by the buffer protocol, by DLPack and of Tenrec's own; numpy is optional, and its cases skip without it."""
import array
import copy
import gc
import pickle
import threading
import weakref

from cases import Skipped, contains, equal, main, true, until
from workers import LIMIT_S, refused, started, tenrec

try:
    import numpy
except ImportError:
    numpy = None


def need_numpy():
    if not numpy:
        raise Skipped("no numpy")


def echo(x):
    return x


def tensor_of_a_buffer_comes_back():
    with started() as (w0, w1):
        w1.register(echo)
        for code in "bBhHiIlLqQfd":
            t = w0.call("w1", "echo", array.array(code, [1, 2, 3]))
            equal(memoryview(t).tolist(), [1, 2, 3], f"elements of {code}")
        t = w0.call("w1", "echo", memoryview(bytes(range(24))).cast("B", (2, 3, 4)))
        equal((t.shape, t.dtype, t.read_only, memoryview(t)[1, 2, 3]), ((2, 3, 4), "uint8", False, 23))
        equal(bytes(t), bytes(range(24)))
        equal(t.tolist(), [[[12 * i + 4 * j + k for k in range(4)] for j in range(3)] for i in range(2)])


def tensor_of_numpy_comes_back_without_copies_of_ours():
    need_numpy()
    base = numpy.arange(24.).reshape(2, 3, 4)
    with started() as (w0, w1):
        w1.register(echo)
        for x in [base, base[1], base.T, base[:, ::2], numpy.full((), 3.0), numpy.empty((0, 4)), numpy.array([True, False]),
                  numpy.ones(3, numpy.float16), numpy.ones(2, numpy.complex64), numpy.arange(1 << 20), numpy.broadcast_to(base[0, 0], (3, 4))]:
            y = numpy.asarray(w0.call("w1", "echo", x))
            equal((y.dtype, y.shape), (x.dtype, x.shape))
            true((x == y).all(), f"{x!r} came back as {y!r}")
            true(y.flags.writeable and not y.flags.owndata, f"{x!r} came as a view of the message that may be written")


def tensor_keeps_its_memory_while_an_array_uses_it():
    need_numpy()
    with started() as (w0, w1):
        w1.register(echo)
        arrays = [numpy.asarray(w0.call("w1", "echo", numpy.full(100000, i))) for i in range(8)]
        gc.collect()
        for i, a in enumerate(arrays):
            true((a == i).all(), f"array {i} is whole")


def tensor_by_dlpack_shares_its_memory():
    need_numpy()

    class ByDlpack: # pylint: disable=too-few-public-methods
        def __init__(self, a):
            self.a = a

        def __dlpack__(self):
            return self.a.__dlpack__()
    with started() as (w0, w1):
        w1.register(echo)
        t = w0.call("w1", "echo", ByDlpack(numpy.arange(12.).reshape(3, 4)))
        equal((t.shape, t.dtype, t.__dlpack_device__()), ((3, 4), "float64", (1, 0)))
        numpy.asarray(t)[0, 0] = 7
        equal(numpy.from_dlpack(t)[0, 0], 7.0)
    equal(tenrec.empty((2,)).__dlpack__().__class__.__name__, "PyCapsule") # unused: the capsule frees it


def tensor_releases_the_memory_of_python():
    need_numpy()

    class Array(numpy.ndarray):
        pass
    x = numpy.ones(50000).view(Array)
    gone = weakref.ref(x)
    with started() as (w0, w1):
        w1.register("length", lambda t: t.shape[0])
        equal(w0.call("w1", "length", x), 50000)
        del x
        until(lambda: w0.call("w1", "length", array.array("b")) == 0 and not gone(), "the array is released")


def tensor_is_released_while_no_other_call_is_made():
    need_numpy()

    class Array(numpy.ndarray):
        pass
    x = numpy.ones(50000).view(Array)
    gone = threading.Event()
    kept = weakref.finalize(x, gone.set)
    with started() as (w0, w1):
        w1.register("length", lambda t: t.shape[0])
        future = w0.call_async("w1", "length", x)
        del x
        until(future.done, "the call")
        del future
        until(gone.is_set, "the array is released") # by the main thread, between two of its lines
    true(not kept.alive, "once")


def tensor_scalars_of_numpy_are_numbers():
    need_numpy()
    with started() as (w0, w1):
        w1.register(echo)
        for x, y in [(numpy.float32(0.5), 0.5), (numpy.int64(7), 7), (numpy.bool_(True), True), (numpy.float64(2), 2.0)]:
            z = w0.call("w1", "echo", x)
            equal((z, type(z)), (y, type(y)))


def tensor_that_cannot_be_sent_is_refused():
    with started() as (w0, w1):
        w1.register(echo)
        call = w0.call
        contains(str(refused(TypeError, call, "w1", "echo", array.array("u", "ab"))),
                 "elements of the format")
        contains(str(refused(ValueError, call, "w1", "echo", memoryview(b"abc")[::-1])), "dimension 0 has a stride of -1 bytes")
        if numpy:
            contains(str(refused(TypeError, call, "w1", "echo", numpy.ones(2, ">f8"))), "byte order")
            contains(str(refused(TypeError, call, "w1", "echo", numpy.array(["a"]))), "elements of the format")
            contains(str(refused(TypeError, call, "w1", "echo", numpy.zeros(2, [("a", "i4"), ("b", "f4")]))), "elements of the format")
            contains(str(refused(ValueError, call, "w1", "echo", numpy.ones((1,) * 17))), "17 dimensions")
        equal(call("w1", "echo", 1), 1)


def tensor_of_its_own_is_written_and_sent():
    t = tenrec.empty((2, 3), "int32")
    memoryview(t).cast("B").cast("i")[:] = array.array("i", range(6))
    with started() as (w0, w1):
        w1.register(echo)
        equal(memoryview(w0.call("w1", "echo", t)).tolist(), [[0, 1, 2], [3, 4, 5]])
    contains(str(refused(ValueError, tenrec.empty, (1,), "float31")), "float31")
    contains(str(refused(ValueError, tenrec.empty, (-1,))), "negative")
    contains(str(refused(ValueError, tenrec.empty, (1,) * 17)), "17 dimensions")
    refused(TypeError, tenrec.Tensor)


def tensor_without_a_format_goes_by_dlpack():
    t = tenrec.empty((2,), "bfloat16")
    contains(str(refused(BufferError, memoryview, t)), "bfloat16")
    equal(t.dtype, "bfloat16")
    with started() as (w0, w1):
        w1.register("dtype", lambda x: x.dtype)
        equal(w0.call("w1", "dtype", t), "bfloat16")


def tensor_of_a_type_that_numpy_lacks_is_no_array_of_objects():
    need_numpy()
    contains(str(refused(TypeError, numpy.asarray, tenrec.empty((2,), "bfloat16"))), "bfloat16: use DLPack")
    equal(tenrec.empty((2, 3), "int16").__array__().shape, (2, 3))


def tensor_with_a_mask_is_refused():
    need_numpy()
    with started() as (w0, w1):
        w1.register(echo)
        contains(str(refused(TypeError, w0.call, "w1", "echo", numpy.ma.masked_less([1.0, 2.0], 1.5))), "filled")


def tensor_passes_through_the_function_of_its_worker():
    seen = []

    def doubled(t):
        seen.append(type(t))
        return array.array("i", [2 * x for x in t.tolist()])
    with started(as_tensor=doubled) as (w0, w1):
        w1.register(echo)
        equal(w0.call("w1", "echo", {"a": [array.array("i", [1, 2])]}), {"a": [array.array("i", [4, 8])]}) # by the callee as well
        equal(w0.call_async("w1", "echo", array.array("i", [3])).wait(), array.array("i", [12]))
        equal(set(seen), {tenrec.Tensor})
    with started(as_tensor=lambda t: t.nothing) as (w0, w1):
        w1.register(echo)
        contains(str(refused(tenrec.RemoteError, w0.call, "w1", "echo", array.array("i", [1]))), "no attribute 'nothing'")


def tensor_with_a_gradient_travels_without():
    need_numpy()

    class Lazy: # as torch's: neither a gradient nor a lazy conjugate can be exported
        def __init__(self, a, steps=("detach", "resolve_conj", "resolve_neg")):
            self.a, self.steps = a, steps

        def step(self, name):
            equal(self.steps[0], name, "step before the export")
            return Lazy(self.a, self.steps[1:])

        detach = lambda self: self.step("detach")
        resolve_conj = lambda self: self.step("resolve_conj")
        resolve_neg = lambda self: self.step("resolve_neg")

        def __dlpack__(self):
            equal(self.steps, (), "steps that are left")
            return self.a.__dlpack__()
    with started() as (w0, w1):
        w1.register(echo)
        equal(w0.call("w1", "echo", Lazy(numpy.arange(3.))).tolist(), [0.0, 1.0, 2.0])


def tensor_that_is_read_only_stays_so():
    with started() as (w0, w1):
        w1.register("kind", lambda t: [t.read_only, t.copy().read_only, memoryview(t).readonly])
        w1.register(echo)
        t = tenrec.empty((1 << 20,), "uint8", shared=True)
        memoryview(t)[0] = 7
        read_only, of_copy, of_view = w0.call("w1", "kind", t)
        equal((of_copy, of_view), (False, read_only))
        back = w0.call("w1", "echo", t)
        if back.read_only:
            refused(BufferError, back.__dlpack__)
            refused(TypeError, memoryview(back).__setitem__, 0, 1)
        equal(memoryview(back.copy())[0], 7)


def tensor_of_constant_bytes_cannot_be_written_by_the_own_worker():
    constant = bytes(100000)

    def write(t):
        memoryview(t)[0] = 1
    with started(1) as (w0,):
        w0.register(write)
        try:
            w0.call("w0", "write", memoryview(constant), timeout=LIMIT_S)
        except tenrec.RemoteError:
            pass
    equal(constant[0], 0)


def tensor_says_what_it_is():
    t = tenrec.empty((2, 3), "int16")
    equal((t.ndim, t.nbytes, len(t), repr(t)), (2, 12, 2, "<tenrec_rpc.Tensor, int16, shape (2, 3)>"))
    t = tenrec.empty((), "bfloat16")
    equal((t.ndim, t.nbytes, t.shape), (0, 2, ()))
    contains(str(refused(TypeError, len, t)), "no length")
    equal(tenrec.empty(3).shape, (3,))


def tensor_is_copied_and_pickled():
    t = tenrec.empty((2, 2), "int32")
    memoryview(t).cast("B").cast("i")[:] = array.array("i", [1, 2, 3, 4])
    for made in [copy.copy(t), copy.deepcopy([t])[0], *(pickle.loads(pickle.dumps(t, p)) for p in range(2, 6))]:
        equal((made.tolist(), made.dtype, made.read_only), ([[1, 2], [3, 4]], "int32", False))
        memoryview(made).cast("B")[0] = 9
    equal(t.tolist(), [[1, 2], [3, 4]])
    for shape, dtype in [((0, 4), "float32"), ((), "float64"), ((3,), "bfloat16")]:
        made = pickle.loads(pickle.dumps(tenrec.empty(shape, dtype)))
        equal((made.shape, made.dtype), (shape, dtype))
    contains(str(refused(ValueError, t.__reduce__()[0], (2,), "int32", False, b"123")), "3 bytes for a tensor of 8")


def tensor_gives_an_array_and_takes_types_of_numpy():
    need_numpy()
    t = tenrec.empty((2, 3), numpy.float64)
    t.numpy()[:] = 7
    equal((t.dtype, t.tolist()), ("float64", [[7.0] * 3] * 2))
    equal([tenrec.empty(1, d).dtype for d in [numpy.dtype("int8"), numpy.bool_, numpy.uint16]], ["int8", "bool", "uint16"])
    contains(str(refused(TypeError, tenrec.empty(1, "bfloat16").numpy)), "bfloat16")
    strided = numpy.arange(12, dtype="int32").reshape(3, 4)[:, ::2]
    with started() as (w0, w1):
        w1.register(echo)
        equal(pickle.loads(pickle.dumps(w0.call("w1", "echo", strided))).tolist(), strided.tolist())


if __name__ == "__main__":
    main(globals(), "tensor_", "python_tensor")
