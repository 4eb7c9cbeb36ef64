/* SPDX-License-Identifier: Apache-2.0 */
// message.h - converts torch's messages to Tenrec's, and back.
//
// Type and payload are sent unchanged. A tensor's metadata is in its descriptor, which
// the tensorpipe plugin writes in the form of torch's own agent; its storage is sent
// without a copy and received into the storage that the tensor keeps. Tensors that no
// descriptor can express (sparse and quantized ones) are pickled as in torch: the first
// tensor is then the pickle, marked as bytes that require gradients, which no tensor of
// torch can be, and the storages follow as plain bytes.
#pragma once

#include "devices.h"
#include "pool.h"

#include <tenrec/chain.h>
#include <tenrec/tensor.h>
#include <torch/csrc/distributed/rpc/message.h>

namespace tenrec_torch
{

using torch::distributed::rpc::Message;

// The destination of a message. Tensors may be sent as copies that the receiver maps, unless
// agent is null.
struct Way {
    tenrec_chain *agent;
    tenrec_peer to;
    tenrec_route route; // of the request, for a response
    Pool *pool;         // frees what may wait for the GIL
    rpc::DeviceMap map; // of tensors to their devices at the receiver
};

struct DropTensor {
    void operator()(tenrec_tensor *t) const
    {
        tenrec_tensor_drop(t);
    }
};

// A message to send: owns payload and storages until the last reader has released them.
// Holds no at::Tensor: the last holder of a tensor known to Python acquires the GIL, and
// here that is the thread that moves all messages. Storages of foreign memory, such as
// numpy's, may need the GIL too: the pool frees these.
// Throws c10::Error for tensors that cannot be sent.
//
// The sender gets two shares, one for msg.release and one for `drop`.
struct Outgoing {
    tenrec_msg msg; // first
    std::vector<char> payload, pickle;
    std::vector<c10::Storage> storages;
    std::vector<std::unique_ptr<tenrec_tensor, DropTensor>> copies;
    std::vector<Descriptor> descs;
    std::atomic<unsigned> shares{ 2 };
    Way way{};

    // Takes the payload of a message without other holders, or of a response.
    static Outgoing *make(c10::intrusive_ptr<Message> message, int64_t id, const Way &way);
    void drop();
};

// Converts a received message without copying its tensors or a large payload. Always releases
// msg, also when throwing. Tensors on devices are ready on `streams`, one for each of `devices`.
c10::intrusive_ptr<Message> read_message(tenrec_msg *msg, const Devices &devices,
                                         const std::vector<c10::Stream> &streams);

} // namespace tenrec_torch
