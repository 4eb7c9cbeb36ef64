/* SPDX-License-Identifier: Apache-2.0 */
// devices.h - tensors on CUDA devices: their memory, maps and streams.
//
// Written against c10's generic interface of devices, so that it builds with each torch and works
// where torch has a guard for CUDA. The order is that of torch's own agent: a message is sent after
// the work queued on the current streams of its sender, on streams of torch's pool; its receiver
// uses it on other streams of the pool, which wait for its arrival. No thread waits for a device.
#pragma once

#include <atomic>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <list>
#include <mutex>
#include <tenrec/chain.h>
#include <torch/csrc/distributed/rpc/message.h>
#include <torch/csrc/distributed/rpc/rpc_agent.h>
#include <unordered_map>
#include <vector>

namespace tenrec_torch
{

namespace rpc = torch::distributed::rpc;
using Descriptor = struct tenrec_tensor_desc; // there is a function of that name, too

// The devices of one agent. From any thread, except for `use`.
class Devices
{
  public:
    using List = std::vector<c10::Device>;

    // Prepares the devices of the list, which may grow from call to call; before the start of
    // `chain`, and after it if the group is dynamic. Throws with the reason if torch, the backend
    // or this host has none.
    void use(tenrec_chain *chain, List devices);

    // All of them, sorted; borrowed until the end of the agent.
    const List &all() const
    {
        return *now_.load(std::memory_order_acquire);
    }

    // The map for results of requests of `caller`: its map for this worker in reverse.
    void setAnswerMap(tenrec_peer caller, rpc::DeviceMap map);
    rpc::DeviceMap answerMap(tenrec_peer caller) const;

    // Streams of torch's pool, one of each device.
    std::vector<c10::Stream> freshStreams() const;

    // Allocates memory for the tensors of a message that arrives: of torch for those that are for a
    // device, else as tenrec_msg_place.
    tenrec_status place(tenrec_msg *msg, tenrec_error *err) const;

    // Takes the storage of tensor `i`, which is on a device, out of a message; ready on `streams`.
    c10::Storage takeStorage(tenrec_msg *msg, uint32_t i,
                             const std::vector<c10::Stream> &streams) const;

  private:
    void placeOnDevice(tenrec_msg *msg, uint32_t i) const;

    std::list<List> lists_{ {} }; // futures borrow earlier ones
    std::atomic<const List *> now_{ &lists_.back() };
    mutable std::mutex lock_; // guards the next
    std::unordered_map<tenrec_peer, rpc::DeviceMap> answer_maps_;
};

// The target of a tensor of a request, or of a response, by `map`. Throws if it is on a device that
// the map lacks.
tenrec_device device_target(const at::Tensor &t, const rpc::DeviceMap &map, bool is_request);

// The streams of a message to send: of each of its devices one, which waits for the work that is
// queued on the current stream of the calling thread.
class SendStreams
{
  public:
    // Sets device and stream of a descriptor for memory of `storage`, and keeps torch from
    // reusing this memory before the stream has read it.
    void describe(Descriptor &d, const c10::Storage &storage);

  private:
    const c10::Stream &of(c10::Device device);

    std::vector<c10::Stream> streams_;
};

} // namespace tenrec_torch
