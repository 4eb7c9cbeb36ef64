// SPDX-License-Identifier: Apache-2.0
#include "devices.h"

#include "compat.h"
#include "stream_handle.h"

#include <ATen/Functions.h>
#include <algorithm>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <tenrec/device.h>

namespace tenrec_torch
{

namespace
{

using Guard = c10::impl::VirtualGuardImpl;

tenrec_device device_of(c10::Device device)
{
    if (device.is_cpu())
        return { TENREC_CPU, 0 };
    return { TENREC_CUDA, device.index() };
}

c10::Device device_of(tenrec_device device)
{
    return { c10::kCUDA, (c10::DeviceIndex)device.index };
}

tenrec_stream stream_of(const c10::Stream &stream)
{
    return { device_of(stream.device()), stream_handle(stream) };
}

bool is_on_device(const Descriptor &d)
{
    return d.target.kind == TENREC_CUDA;
}

// ---- memory for arriving tensors ------------------------------------------------

// Storages of torch that a message owns until it is read. A storage of its own around the memory
// would not do: the caching allocator of torch records streams for its own storages only.
class Arrivals
{
  public:
    static Arrivals &get()
    {
        static auto *all = new Arrivals; // messages outlive the destructors of a process
        return *all;
    }

    // Returns a number for `drop`.
    uintptr_t add(c10::Storage storage)
    {
        std::lock_guard<std::mutex> hold(lock_);
        const void *data = storage.data_ptr().get();

        arrivals_.insert_or_assign(data, Arrival{ ++last_, std::move(storage) });
        return last_;
    }

    // Returns no storage if there is none.
    c10::Storage take(const void *data)
    {
        std::lock_guard<std::mutex> hold(lock_);
        auto found = arrivals_.extract(data);

        return found ? std::move(found.mapped().storage) : c10::Storage();
    }

    // After `take` the address may have a second life: the number tells them apart.
    c10::Storage takeIf(const void *data, uintptr_t number)
    {
        std::lock_guard<std::mutex> hold(lock_);
        const auto at = arrivals_.find(data);

        if (at == arrivals_.end() || at->second.number != number)
            return {};
        c10::Storage storage = std::move(at->second.storage);
        arrivals_.erase(at);
        return storage; // freed by the caller, without the lock
    }

  private:
    struct Arrival {
        uintptr_t number;
        c10::Storage storage;
    };

    std::mutex lock_; // guards the next two
    std::unordered_map<const void *, Arrival> arrivals_;
    uintptr_t last_ = 0;
};

void drop_arrival(void *number, void *data)
{
    Arrivals::get().takeIf(data, reinterpret_cast<uintptr_t>(number));
}

c10::Storage new_storage(c10::Device device, uint64_t bytes)
{
    const at::NoGradGuard no_grad;

    return at::empty({ (int64_t)bytes }, at::TensorOptions(at::kByte).device(device)).storage();
}

} // namespace

// ---- the devices of an agent ------------------------------------------------------

void Devices::use(tenrec_chain *chain, List devices)
{
    std::vector<tenrec_device> list;
    tenrec_error err;

    if (devices.empty() || devices == all())
        return;
    for (const c10::Device &device : devices) {
        TORCH_CHECK_VALUE(device.is_cuda(),
                          "the backend TENREC sends tensors between the host and "
                          "CUDA devices, not ",
                          device);
        list.push_back(device_of(device));
    }
    TORCH_CHECK(c10::impl::hasDeviceGuardImpl(c10::kCUDA),
                "device maps need CUDA, which this torch was built without");
    stream_handle_check();
    if (tenrec_chain_set_devices(chain, list.data(), (uint32_t)list.size(), &err) != TENREC_OK)
        throw std::runtime_error(c10::str("device maps: ", err.text));
    lists_.push_back(std::move(devices));
    now_.store(&lists_.back(), std::memory_order_release);
}

void Devices::setAnswerMap(tenrec_peer caller, rpc::DeviceMap map)
{
    std::lock_guard<std::mutex> hold(lock_);

    answer_maps_.insert_or_assign(caller, std::move(map));
}

rpc::DeviceMap Devices::answerMap(tenrec_peer caller) const
{
    if (all().empty())
        return {};
    std::lock_guard<std::mutex> hold(lock_);
    const auto at = answer_maps_.find(caller);

    return at == answer_maps_.end() ? rpc::DeviceMap() : at->second;
}

std::vector<c10::Stream> Devices::freshStreams() const
{
    std::vector<c10::Stream> streams;

    for (const c10::Device &device : all())
        streams.push_back(Guard(device.type()).getStreamFromGlobalPool(device));
    return streams;
}

void Devices::placeOnDevice(tenrec_msg *msg, uint32_t i) const
{
    Descriptor &d = *tenrec_msg_tensor(msg, i);
    const c10::Device device = device_of(d.target);
    Descriptor placed = d;
    tenrec_tensor *t;
    tenrec_error err;

    TORCH_CHECK(std::find(all().begin(), all().end(), device) != all().end(), "tensor ", i,
                " of a message is for ", device, ", which is none of this worker's devices");
    const c10::Stream stream = Guard(device.type()).getStreamFromGlobalPool(device);
    const c10::MultiStreamGuard on_stream(stream); // which torch's allocator gives the memory to
    c10::Storage storage = new_storage(device, d.bytes);
    placed.data = compat_memory(storage);
    placed.device = d.target;
    placed.stream = stream_handle(stream);
    void *number =
        placed.data ? reinterpret_cast<void *>(Arrivals::get().add(std::move(storage))) : nullptr;
    if (tenrec_tensor_from_desc(&placed, drop_arrival, number, &t, &err) != TENREC_OK) {
        drop_arrival(number, placed.data);
        TORCH_CHECK(false, err.text);
    }
    tenrec_msg_set_tensor(msg, i, t);
    d = placed;
}

tenrec_status Devices::place(tenrec_msg *msg, tenrec_error *err) const
{
    if (!all().empty())
        try {
            for (uint32_t i = 0; i < msg->n_tensors; i++)
                if (is_on_device(*tenrec_msg_tensor(msg, i)) &&
                    !tenrec_msg_tensor(msg, i)->same_storage)
                    placeOnDevice(msg, i);
        } catch (const c10::Error &e) {
            return tenrec_fail(err, TENREC_ENOMEM, "%s", e.what_without_backtrace());
        } catch (const std::exception &e) {
            return tenrec_fail(err, TENREC_ENOMEM, "%s", e.what());
        }
    return tenrec_msg_place(msg, err);
}

c10::Storage Devices::takeStorage(tenrec_msg *msg, uint32_t i,
                                  const std::vector<c10::Stream> &streams) const
{
    const Descriptor &d = *tenrec_msg_tensor(msg, i);
    const c10::Device device = device_of(d.device);
    const tenrec_stream written{ d.device, d.stream };
    tenrec_error err;

    if (!d.data)
        return new_storage(device, 0);
    c10::Storage storage = Arrivals::get().take(d.data);
    tenrec_tensor_drop(tenrec_msg_take_tensor(msg, i));
    TORCH_CHECK(storage, "tensor ", i, " of a message has no memory");
    for (const c10::Stream &stream : streams) {
        if (stream.device() != device)
            continue;
        const tenrec_stream reads = stream_of(stream);
        TORCH_CHECK(tenrec_stream_order(&written, &reads, &err) == TENREC_OK, err.text);
        Guard(device.type()).recordDataPtrOnStream(storage.data_ptr(), stream);
    }
    return storage;
}

// ---- sending ------------------------------------------------------------------------

tenrec_device device_target(const at::Tensor &t, const rpc::DeviceMap &map, bool is_request)
{
    const c10::Device device = t.defined() ? t.device() : c10::Device(c10::kCPU);
    const auto at = map.find(device);

    if (at != map.end())
        return device_of(at->second);
    if (!device.is_cpu())
        TORCH_CHECK(is_request, "Response device mapping is not available for ", device,
                    ": the caller's device map for this worker has no entry for it; add one with "
                    "`set_device_map` in the caller, or move the result to the CPU");
    TORCH_CHECK(device.is_cpu(),
                "TENREC, like the TensorPipe RPC backend only supports CPU tensors by default: a "
                "request has a tensor on ",
                device,
                ", for which the device map has no entry; call `set_device_map` on "
                "`TensorPipeRpcBackendOptions` or `TenrecRpcBackendOptions`, or move it to the "
                "CPU");
    return { TENREC_CPU, 0 };
}

const c10::Stream &SendStreams::of(c10::Device device)
{
    for (const c10::Stream &stream : streams_)
        if (stream.device() == device)
            return stream;
    const Guard guard(device.type());
    c10::Event queued(device.type());

    queued.record(guard.getStream(device));
    streams_.push_back(guard.getStreamFromGlobalPool(device));
    queued.block(streams_.back());
    return streams_.back();
}

void SendStreams::describe(Descriptor &d, const c10::Storage &storage)
{
    d.device = device_of(storage.device());
    if (storage.device().is_cpu())
        return;
    const c10::Stream &stream = of(storage.device());

    d.stream = stream_handle(stream);
    Guard(stream.device().type()).recordDataPtrOnStream(storage.data_ptr(), stream);
}

} // namespace tenrec_torch
