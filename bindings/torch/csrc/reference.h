/* SPDX-License-Identifier: Apache-2.0 */
// reference.h - references to values made by a worker's calls to itself.
#pragma once

#include <torch/csrc/distributed/rpc/message.h>
#include <torch/csrc/distributed/rpc/rref_impl.h>

namespace tenrec_torch
{

// Returns true if a request of `type` makes a value that a reference refers to, or may do so.
bool reference_comes_of(uint32_t type);

// Returns the owner of the value that `request` of this worker to itself makes; null if it makes
// none, or cannot be read twice. torch's context holds the owner until the call ends.
c10::intrusive_ptr<torch::distributed::rpc::OwnerRRef>
reference_made_by(const torch::distributed::rpc::Message &request);

} // namespace tenrec_torch
