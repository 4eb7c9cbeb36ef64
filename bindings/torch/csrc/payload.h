/* SPDX-License-Identifier: Apache-2.0 */
// payload.h - memory of a large payload that arrives: the vector that torch's message keeps.
//
// The vector's length is set after the bytes are there. A vector of the announced length would be
// filled with zeros first: a pass over all of its memory, and memory in use for bytes that a peer
// has only announced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

struct tenrec_msg;

namespace tenrec_torch
{

class Payload : private std::vector<char>
{
  public:
    // Throws std::bad_alloc or std::length_error.
    explicit Payload(size_t bytes);
    Payload(const Payload &) = delete;
    Payload &operator=(const Payload &) = delete;

    void *memory()
    {
        return data();
    }

    // Returns the vector with all of its bytes, which have been written to memory().
    std::vector<char> take();

    // For tenrec_chain_user: an owner is a Payload.
    static void *onNew(void *arg, uint64_t bytes, void **ret_data) noexcept;
    static void onDrop(void *owner) noexcept;

  private:
    const size_t bytes_;
};

// Takes the payload of a received message: without a copy if its memory is a Payload.
std::vector<char> take_payload(tenrec_msg *msg);

} // namespace tenrec_torch
