// SPDX-License-Identifier: Apache-2.0
#include "stream_handle.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

namespace tenrec_torch
{

namespace
{

// c10::cuda::CUDAStream::stream() const. Its header needs CUDA's; the class has one member, the
// c10::Stream, so a stream is one of these too.
using StreamFunction = void *(const c10::Stream *);
constexpr char LIBRARY[] = "libc10_cuda.so", FUNCTION[] = "_ZNK3c104cuda10CUDAStream6streamEv";

StreamFunction *find()
{
    void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD); // of the torch that is loaded

    return library ? reinterpret_cast<StreamFunction *>(dlsym(library, FUNCTION)) : nullptr;
}

StreamFunction *function()
{
    static StreamFunction *const found = find();

    return found;
}

} // namespace

void stream_handle_check()
{
    TORCH_CHECK(function(), "device maps: this torch has no ", LIBRARY, " with ", FUNCTION,
                ", which gives the handles of its streams: it was built without CUDA, or for "
                "devices other than those of NVIDIA");
}

uint64_t stream_handle(const c10::Stream &stream)
{
    return reinterpret_cast<uint64_t>(function()(&stream));
}

} // namespace tenrec_torch
