// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include <string_view>
#include <torch/csrc/distributed/rpc/python_remote_call.h>
#include <torch/csrc/distributed/rpc/rref_context.h>
#include <torch/csrc/distributed/rpc/script_remote_call.h>
#include <torch/csrc/distributed/rpc/utils.h>

namespace tenrec_torch
{

namespace
{

namespace rpc = torch::distributed::rpc;

// The start of a reference in a pickle of TorchScript values. Reading such a value forks the
// reference, which only the callee may do.
constexpr std::string_view FORK = "torch.distributed.rpc\nrref\n";

bool wraps_another(int64_t type)
{
    return type == rpc::FORWARD_AUTOGRAD_REQ || type == rpc::RUN_WITH_PROFILING_REQ;
}

c10::intrusive_ptr<rpc::Message> reference_unwrap(const rpc::Message &request)
{
    std::vector<char> payload = request.payload();
    int64_t type = request.type();

    while (wraps_another(type))
        type = rpc::readWrappedPayload(payload, request).at(0).toInt();
    return c10::make_intrusive<rpc::Message>(std::move(payload),
                                             std::vector<at::Tensor>(request.tensors()),
                                             static_cast<rpc::MessageType>(type));
}

c10::optional<rpc::RRefId> reference_id(const rpc::Message &call)
{
    const std::string_view payload(call.payload().data(), call.payload().size());

    if (call.type() == rpc::PYTHON_REMOTE_CALL)
        return rpc::RRefId::fromIValue(rpc::PythonRemoteCall::fromMessage(call)->retRRefId());
    if (call.type() == rpc::SCRIPT_REMOTE_CALL && payload.find(FORK) == payload.npos)
        return rpc::ScriptRemoteCall::fromMessage(call)->retRRefId();
    return c10::nullopt;
}

} // namespace

bool reference_comes_of(uint32_t type)
{
    return type == rpc::SCRIPT_REMOTE_CALL || type == rpc::PYTHON_REMOTE_CALL ||
           wraps_another(type);
}

c10::intrusive_ptr<rpc::OwnerRRef> reference_made_by(const rpc::Message &request)
{
    try {
        if (const auto id = reference_id(*reference_unwrap(request)))
            return rpc::fromRRefInterface(
                rpc::RRefContext::getInstance().getOwnerRRef(*id, true)->constValue().toRRef());
    } catch (const std::exception &) { // torch's context does not have it any more
    }
    return {};
}

} // namespace tenrec_torch
