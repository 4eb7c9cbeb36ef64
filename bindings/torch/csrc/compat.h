/* SPDX-License-Identifier: Apache-2.0 */
// compat.h - what differs between the versions of torch and Python that the binding is built for.
#pragma once

#include <Python.h>
#include <c10/core/Storage.h>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace tenrec_torch
{

// Returns true once the interpreter finalizes. Any thread.
inline bool compat_is_finalizing()
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

// Returns the memory of a storage, which may be null. Storage::data() of torch 2 is read-only,
// and its mutable_data(), which torch 1 lacks, would copy what is shared until it is written.
inline void *compat_memory(const c10::Storage &storage)
{
    return storage.data_ptr().get();
}

// Sets a key to one byte. In torch 2 `set` has an overload for text, ambiguous with `{ 1 }`.
inline void compat_mark(c10d::Store &store, const std::string &key)
{
    store.set(key, std::vector<uint8_t>{ 1 });
}

} // namespace tenrec_torch
