/* SPDX-License-Identifier: Apache-2.0 */
// stream_handle.h - the driver's handle of a stream of torch.
#pragma once

#include <c10/core/Stream.h>
#include <cstdint>

namespace tenrec_torch
{

// Throws if this torch does not tell handles: before streams are used.
void stream_handle_check();

// After the check; `stream` is one of CUDA.
uint64_t stream_handle(const c10::Stream &stream);

} // namespace tenrec_torch
