/* SPDX-License-Identifier: Apache-2.0 */
// message.h - torch's messages as Tenrec's, and back.
//
// Type and payload travel as they are. A tensor's metadata lies in its
// descriptor, which the tensorpipe plugin writes in the form that torch's own
// agent uses, and its storage is sent from where it lies and received into the
// storage that the tensor keeps. What no descriptor can say (sparse and quantized
// tensors) is pickled as torch does it: the pickle is the first
// tensor then, of bytes that require gradients, which no tensor of torch's can,
// and the storages follow as plain bytes.
#pragma once

#include "pool.h"

#include <tenrec/agent_user.h>
#include <tenrec/tensor.h>
#include <torch/csrc/distributed/rpc/message.h>

namespace tenrec_torch
{

using torch::distributed::rpc::Message;
using Descriptor = struct tenrec_tensor_desc; // there is a function of that name, too

// Where a message goes. Tensors may go as copies that the receiver maps; agent null: they do not.
struct Way {
    tenrec_backend_agent *agent;
    tenrec_peer to;
    tenrec_route route; // of the request, for a response
    Pool *pool;         // frees what may wait for the GIL
};

struct DropTensor {
    void operator()(tenrec_tensor *t) const
    {
        tenrec_tensor_drop(t);
    }
};

// A message to send: payload and storages, for as long as somebody reads them. No
// at::Tensor, as the last holder of one that Python knew takes the GIL, and the last
// one here is the thread that moves the messages of all. Storages of others' memory,
// such as numpy's, may take it, too: the pool has them then.
// Throws c10::Error for tensors that cannot travel.
//
// Who sends gets two shares, one for msg.release and one for `drop`.
struct Outgoing {
    tenrec_msg msg; // first
    std::vector<char> payload, pickle;
    std::vector<c10::Storage> storages;
    std::vector<std::unique_ptr<tenrec_tensor, DropTensor>> copies;
    std::vector<Descriptor> descs;
    std::atomic<unsigned> shares{ 2 };
    Way way{};
    void *agent = nullptr; // for who sends

    // Takes the payload out of a message that nobody else holds, and of a response.
    static Outgoing *make(c10::intrusive_ptr<Message> message, int64_t id, const Way &way);
    void drop();
};

// What has arrived, without its tensors' being copied. Releases msg always, also
// when it throws.
c10::intrusive_ptr<Message> read_message(tenrec_msg *msg);

} // namespace tenrec_torch
