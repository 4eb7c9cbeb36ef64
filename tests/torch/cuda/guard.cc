// SPDX-License-Identifier: Apache-2.0
// guard.cc - CUDA devices for a torch that was built without CUDA, on the stand-in of the driver
// (tests/tensorpipe/cuda/stand_in): the streams, events and memory that libc10_cuda.so has in a
// torch with CUDA, under its name. There are no kernels but copies, which is enough to see whether
// work waits for what it needs: the stand-in runs it late, and poisons what is not written yet.
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <array>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <mutex>
#include <torch/library.h>
#include <torch/version.h>
#include <unordered_map>
#include <vector>

namespace
{

constexpr int DEVICES = 16, STREAMS = 32; // of a device

// ---- the driver -----------------------------------------------------------------------

using Address = unsigned long long;
struct Driver {
    int (*init)(unsigned);
    int (*count)(int *);
    int (*retain)(void **, int);
    int (*push)(void *);
    int (*pop)(void **);
    int (*alloc)(Address *, size_t);
    int (*free)(Address);
    int (*copy)(Address, Address, size_t, void *);
    int (*stream_new)(void **, unsigned);
    int (*stream_sync)(void *);
    int (*stream_wait)(void *, void *, unsigned);
    int (*event_new)(void **, unsigned);
    int (*event_drop)(void *);
    int (*event_record)(void *, void *);
    int (*event_query)(void *);
};

template <class Function> void find(void *library, const char *name, Function *&ret)
{
    ret = reinterpret_cast<Function *>(dlsym(library, name));
    TORCH_CHECK(ret, "the driver has no ", name);
}

void check(int result, const char *call)
{
    TORCH_CHECK(result == 0, call, " failed: ", result);
}

Driver open_driver()
{
    void *const lib = dlopen("libcuda.so.1", RTLD_NOW);
    Driver d{};

    TORCH_CHECK(lib, dlerror());
    find(lib, "cuInit", d.init);
    find(lib, "cuDeviceGetCount", d.count);
    find(lib, "cuDevicePrimaryCtxRetain", d.retain);
    find(lib, "cuCtxPushCurrent_v2", d.push);
    find(lib, "cuCtxPopCurrent_v2", d.pop);
    find(lib, "cuMemAlloc_v2", d.alloc);
    find(lib, "cuMemFree_v2", d.free);
    find(lib, "cuMemcpyAsync", d.copy);
    find(lib, "cuStreamCreate", d.stream_new);
    find(lib, "cuStreamSynchronize", d.stream_sync);
    find(lib, "cuStreamWaitEvent", d.stream_wait);
    find(lib, "cuEventCreate", d.event_new);
    find(lib, "cuEventDestroy_v2", d.event_drop);
    find(lib, "cuEventRecord", d.event_record);
    find(lib, "cuEventQuery", d.event_query);
    check(d.init(0), "cuInit");
    return d;
}

const Driver &driver()
{
    static const Driver found = open_driver();

    return found;
}

// The context of a device is current on this thread.
class Context
{
  public:
    explicit Context(int device)
    {
        static std::mutex lock;
        static std::array<void *, DEVICES> contexts;
        std::lock_guard<std::mutex> hold(lock);
        void *&context = contexts.at((size_t)device);

        if (!context)
            check(driver().retain(&context, device), "cuDevicePrimaryCtxRetain");
        check(driver().push(context), "cuCtxPushCurrent");
    }

    ~Context()
    {
        void *left;

        driver().pop(&left);
    }
};

// ---- streams ----------------------------------------------------------------------------

struct Streams {
    std::mutex lock;
    std::array<void *, STREAMS> handle{};
    unsigned next = 0;
};
std::array<Streams, DEVICES> pool;
thread_local c10::DeviceIndex current_device = 0;
thread_local std::array<c10::StreamId, DEVICES> current_stream{}; // 0: the default stream

void *handle_of(const c10::Stream &stream)
{
    Streams &all = pool.at((size_t)stream.device_index());
    std::lock_guard<std::mutex> hold(all.lock);

    return stream.id() ? all.handle.at((size_t)stream.id() - 1) : nullptr;
}

// ---- memory -----------------------------------------------------------------------------

// Waits for the streams that are known to use a block when it is freed, and for no others.
struct Block {
    std::vector<c10::Stream> users;
};
std::mutex blocks_lock;
std::unordered_map<void *, Block> blocks;

c10::Stream stream_now(c10::DeviceIndex device)
{
    return c10::Stream(c10::Stream::UNSAFE, { c10::kCUDA, device },
                       current_stream.at((size_t)device));
}

void free_block(void *data)
{
    Block block;
    {
        std::lock_guard<std::mutex> hold(blocks_lock);
        block = std::move(blocks.extract(data).mapped());
    }
    for (const c10::Stream &user : block.users) {
        const Context in(user.device_index());
        driver().stream_sync(handle_of(user));
    }
    const Context in(block.users.front().device_index());
    check(driver().free(reinterpret_cast<Address>(data)), "cuMemFree");
}

struct Allocator final : c10::Allocator {
#if TORCH_VERSION_MAJOR >= 2
    c10::DataPtr allocate(size_t bytes) override
    {
        return allocateHere(bytes);
    }
    void copy_data(void *, const void *, size_t) const override
    {
        TORCH_CHECK(false, "the stand-in clones no memory");
    }
#else
    c10::DataPtr allocate(size_t bytes) const override
    {
        return allocateHere(bytes);
    }
#endif
    c10::DeleterFnPtr raw_deleter() const override
    {
        return free_block;
    }

  private:
    static c10::DataPtr allocateHere(size_t bytes)
    {
        const c10::Device device(c10::kCUDA, current_device);
        Address at = 0;

        if (bytes == 0)
            return { nullptr, device };
        const Context in(current_device);
        check(driver().alloc(&at, bytes), "cuMemAlloc");
        auto *data = reinterpret_cast<void *>(at);
        std::lock_guard<std::mutex> hold(blocks_lock);
        blocks[data] = { { stream_now(current_device) } };
        return { data, data, free_block, device };
    }
} allocator;

// ---- the guard --------------------------------------------------------------------------

struct GuardImpl final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override
    {
        return c10::kCUDA;
    }
    c10::Device exchangeDevice(c10::Device device) const override
    {
        return { c10::kCUDA, std::exchange(current_device, device.index()) };
    }
    c10::Device getDevice() const override
    {
        return { c10::kCUDA, current_device };
    }
    void setDevice(c10::Device device) const override
    {
        current_device = device.index();
    }
    void uncheckedSetDevice(c10::Device device) const noexcept override
    {
        current_device = device.index();
    }
    c10::Stream getStream(c10::Device device) const noexcept override
    {
        return stream_now(device.index());
    }
    c10::Stream getDefaultStream(c10::Device device) const override
    {
        return c10::Stream(c10::Stream::DEFAULT, device);
    }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override
    {
        Streams &all = pool.at((size_t)device.index());
        const Context in(device.index());
        std::lock_guard<std::mutex> hold(all.lock);
        const unsigned i = all.next++ % STREAMS;

        if (!all.handle[i])
            check(driver().stream_new(&all.handle[i], 1), "cuStreamCreate");
        return c10::Stream(c10::Stream::UNSAFE, device, (c10::StreamId)i + 1);
    }
    c10::Stream exchangeStream(c10::Stream stream) const noexcept override
    {
        const c10::Stream before = stream_now(stream.device_index());

        current_stream.at((size_t)stream.device_index()) = stream.id();
        return before;
    }
    c10::DeviceIndex deviceCount() const noexcept override
    {
        int n = 0;

        try {
            driver().count(&n);
        } catch (const std::exception &) {
        }
        return (c10::DeviceIndex)n;
    }
    void destroyEvent(void *event, c10::DeviceIndex) const noexcept override
    {
        if (event)
            driver().event_drop(event);
    }
    void record(void **event, const c10::Stream &stream, c10::DeviceIndex,
                c10::EventFlag) const override
    {
        const Context in(stream.device_index());

        if (!*event)
            check(driver().event_new(event, 2), "cuEventCreate");
        check(driver().event_record(*event, handle_of(stream)), "cuEventRecord");
    }
    void block(void *event, const c10::Stream &stream) const override
    {
        const Context in(stream.device_index());

        if (event)
            check(driver().stream_wait(handle_of(stream), event, 0), "cuStreamWaitEvent");
    }
    bool queryEvent(void *event) const override
    {
        return !event || driver().event_query(event) == 0;
    }
    void synchronizeStream(const c10::Stream &stream) const override
    {
        const Context in(stream.device_index());

        check(driver().stream_sync(handle_of(stream)), "cuStreamSynchronize");
    }
    void recordDataPtrOnStream(const c10::DataPtr &data, const c10::Stream &stream) const override
    {
        std::lock_guard<std::mutex> hold(blocks_lock);
        const auto at = blocks.find(data.get());

        if (data.get_deleter() == free_block && at != blocks.end())
            at->second.users.push_back(stream);
    }
};

C10_REGISTER_GUARD_IMPL(CUDA, GuardImpl);

// ---- operators --------------------------------------------------------------------------

at::Tensor empty(c10::IntArrayRef size, c10::optional<at::ScalarType> dtype,
                 c10::optional<at::Layout>, c10::optional<at::Device> device, c10::optional<bool>,
                 c10::optional<at::MemoryFormat> format)
{
    const c10::DeviceGuard on(*device);

    return at::detail::empty_generic(size, &allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                     dtype.value_or(at::kFloat), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         c10::optional<at::ScalarType> dtype, c10::optional<at::Layout>,
                         c10::optional<at::Device> device, c10::optional<bool>)
{
    const c10::DeviceGuard on(*device);

    return at::detail::empty_strided_generic(size, stride, &allocator,
                                             c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                             dtype.value_or(at::kFloat));
}

// Of a whole tensor, on the current stream of its device; the host waits for its own memory.
at::Tensor &copy(at::Tensor &to, const at::Tensor &from, bool)
{
    const c10::DeviceIndex device = to.is_cuda() ? to.device().index() : from.device().index();
    const Context in(device);
    void *const stream = handle_of(stream_now(device));

    TORCH_CHECK(to.is_contiguous() && from.is_contiguous() && to.nbytes() == from.nbytes(),
                "the stand-in copies contiguous tensors only");
    check(driver().copy(reinterpret_cast<Address>(to.data_ptr()),
                        reinterpret_cast<Address>(from.data_ptr()), to.nbytes(), stream),
          "cuMemcpyAsync");
    if (!to.is_cuda() || !from.is_cuda())
        check(driver().stream_sync(stream), "cuStreamSynchronize");
    return to;
}

TORCH_LIBRARY_IMPL(aten, CUDA, m)
{
    m.impl("empty.memory_format", empty);
    m.impl("empty_strided", empty_strided);
    m.impl("copy_", copy);
}

at::Tensor put_on(const at::Tensor &t, int64_t device)
{
    const at::Device on(c10::kCUDA, (c10::DeviceIndex)device);

    return at::empty(t.sizes(), t.options().device(on)).copy_(t);
}

// Makes another stream the current one of this thread.
void use_stream(int64_t device)
{
    const GuardImpl guard;

    guard.exchangeStream(
        guard.getStreamFromGlobalPool({ c10::kCUDA, (c10::DeviceIndex)device }, false));
}

TORCH_LIBRARY(stand_in, m)
{
    m.def("put_on(Tensor t, int device) -> Tensor", put_on);
    m.def("use_stream(int device) -> ()", use_stream);
}

} // namespace

namespace c10::cuda
{

class __attribute__((visibility("default"))) CUDAStream
{
  public:
    void *stream() const;

  private:
    Stream stream_;
};

void *CUDAStream::stream() const
{
    return handle_of(stream_);
}

} // namespace c10::cuda
