// SPDX-License-Identifier: Apache-2.0
// payload_test.cc - large payloads of tenrec_torch, received over a real backend.
#include "payload.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <tenrec/chain.h>
#include <tenrec/config.h>
#include <utility>

using tenrec_torch::Payload;
using tenrec_torch::take_payload;

namespace
{

constexpr std::chrono::seconds LIMIT(30);
constexpr char CONFIG[] = "backend: shm\n"
                          "backends:\n"
                          "  shm: { plugin: tensorpipe }\n";

void check(tenrec_status status, const tenrec_error &err)
{
    if (status != TENREC_OK)
        throw std::runtime_error(err.text);
}

// The byte of a payload at `i`.
char pattern(size_t i)
{
    return (char)(i * 7 + (i >> 12));
}

// One of two workers of this process.
class End
{
  public:
    End(const tenrec_chain_options *options, int id)
    {
        tenrec_chain_user user{};
        tenrec_error err;

        user.size = sizeof user;
        user.deliver = [](void *arg, tenrec_peer, tenrec_msg *msg) {
            static_cast<End *>(arg)->deliver(msg);
        };
        user.arg = this;
        user.payload_new = Payload::onNew;
        user.payload_drop = Payload::onDrop;
        me.size = sizeof me;
        me.id = id;
        me.name = id ? "b" : "a";
        check(tenrec_chain_new(options, &user, &me, 2, &agent, &err), err);
        me.address = tenrec_chain_address(agent);
    }

    ~End()
    {
        tenrec_chain_drop(agent);
        if (last_)
            last_->release(last_);
    }

    // Returns the next message, which the caller releases.
    tenrec_msg *receive()
    {
        std::unique_lock<std::mutex> hold(lock_);

        if (!came_.wait_for(hold, LIMIT, [this] { return last_; }))
            throw std::runtime_error("no message arrived");
        return std::exchange(last_, nullptr);
    }

    tenrec_chain *agent = nullptr;
    tenrec_member me{};

  private:
    void deliver(tenrec_msg *msg)
    {
        std::lock_guard<std::mutex> hold(lock_);

        last_ = msg;
        came_.notify_all();
    }

    std::mutex lock_;
    std::condition_variable came_;
    tenrec_msg *last_ = nullptr;
};

struct Options {
    Options()
    {
        tenrec_config *config;
        tenrec_error err;

        check(tenrec_config_parse(CONFIG, nullptr, &config, &err), err);
        check(tenrec_chain_options_new(config, &options, &err), err);
        tenrec_config_drop(config);
    }

    ~Options()
    {
        tenrec_chain_options_drop(options);
    }

    tenrec_chain_options *options = nullptr;
};

// Sends `bytes` bytes; returns true if they arrived, and the vector has them at the address where
// they arrived, or at another one, as `stays` says.
bool arrives(End &from, End &to, size_t bytes, bool stays)
{
    tenrec_msg *msg = tenrec_msg_new(bytes, 0);

    msg->type = 0x102;
    for (size_t i = 0; i < bytes; i++)
        static_cast<char *>(msg->payload)[i] = pattern(i);
    tenrec_chain_send(from.agent, to.me.id, msg, {});
    msg = to.receive();
    const void *at = msg->payload;
    const std::vector<char> payload = take_payload(msg);
    bool same = payload.size() == bytes && (payload.data() == at) == stays;
    for (size_t i = 0; i < bytes && same; i++)
        same = payload[i] == pattern(i);
    msg->release(msg);
    return same;
}

int number, failures;

void tell(bool ok, const char *name)
{
    printf("%s %d - %s\n", ok ? "ok" : "not ok", ++number, name);
    failures += !ok;
}

} // namespace

int main()
{
    const Options options;
    End a(options.options, 0), b(options.options, 1);
    const tenrec_member members[] = { a.me, b.me };
    tenrec_error err;

    printf("1..3\n");
    for (End *end : { &a, &b })
        check(tenrec_chain_start(end->agent, members, 2, &err), err);
    tell(arrives(a, b, TENREC_LARGE_PAYLOAD - 1, false), "payload_is_copied_when_small");
    tell(arrives(a, b, TENREC_LARGE_PAYLOAD, true), "payload_stays_where_it_arrived");
    tell(arrives(a, b, (size_t)33 << 20, true), "payload_stays_where_it_arrived_when_very_large");
    return failures > 0;
}
