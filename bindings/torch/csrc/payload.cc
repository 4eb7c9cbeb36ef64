// SPDX-License-Identifier: Apache-2.0
#include "payload.h"

#include <exception>
#include <memory>
#include <sys/mman.h>
#include <tenrec/chain.h>
#include <utility>

namespace tenrec_torch
{

namespace
{

// Memory of this size is fresh from the kernel: fewer and larger pages are faster to fill.
constexpr size_t HUGE_FROM = (size_t)4 << 20, HUGE_PAGE = (size_t)2 << 20;

void use_huge_pages(char *data, size_t bytes)
{
    const size_t before = (HUGE_PAGE - (uintptr_t)data % HUGE_PAGE) % HUGE_PAGE;

    madvise(data + before, (bytes - before) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE); // a hint
}

} // namespace

Payload::Payload(size_t bytes) : bytes_(bytes)
{
#ifdef __GLIBCXX__
    reserve(bytes);
    if (bytes >= HUGE_FROM)
        use_huge_pages(data(), bytes);
#else
    resize(bytes);
#endif
}

std::vector<char> Payload::take()
{
#ifdef __GLIBCXX__ // no function of std::vector gives it a length without writing the bytes
    _M_impl._M_finish = _M_impl._M_start + bytes_;
#endif
    return std::move(static_cast<std::vector<char> &>(*this));
}

void *Payload::onNew(void *, uint64_t bytes, void **ret_data) noexcept
{
    try {
        auto *payload = new Payload(bytes);

        *ret_data = payload->memory();
        return payload;
    } catch (const std::exception &) { // the message finds no memory either, and says so
        return nullptr;
    }
}

void Payload::onDrop(void *owner) noexcept
{
    delete static_cast<Payload *>(owner);
}

std::vector<char> take_payload(tenrec_msg *msg)
{
    const std::unique_ptr<Payload> own(static_cast<Payload *>(tenrec_msg_take_payload(msg)));
    const char *payload = static_cast<const char *>(msg->payload);

    return own ? own->take() : std::vector<char>(payload, payload + msg->payload_len);
}

} // namespace tenrec_torch
