/* SPDX-License-Identifier: Apache-2.0 */
// server.h - requests of other workers, until they are answered.
#pragma once

#include "message.h"
#include "pool.h"

#include <atomic>
#include <shared_mutex>
#include <torch/csrc/distributed/rpc/request_callback.h>

namespace tenrec_torch
{

namespace rpc = torch::distributed::rpc;

// Shared with the futures that functions have returned: such a future may complete after
// the agent was freed.
class Server : public std::enable_shared_from_this<Server>
{
  public:
    // proves   members have to prove that they belong to the group
    Server(Pool &pool, const rpc::RequestCallback &functions, const Devices &devices, bool proves)
        : pool_(pool), functions_(functions), devices_(devices), proves_(proves)
    {
    }

    // The agent that sends answers, until close; later answers are dropped.
    void open(tenrec_chain *backend);
    void close();

    // Answers a request, on the pool; takes msg. Not after close. A request contains code
    // that its sender chose: only requests of verified members are unpickled, where members prove
    // themselves only those of connections that did.
    void serve(tenrec_peer from, tenrec_msg *msg);

    // Returns nullptr for a request that may be unpickled.
    const char *refusalOf(tenrec_peer from, const tenrec_msg &msg) const;
    // Counts a refused request.
    void refused()
    {
        refused_calls_++;
    }
    int64_t refusedCalls() const
    {
        return refused_calls_;
    }

    // Requests without an answer, and of those the ones whose function has returned.
    int64_t calls() const
    {
        return calls_;
    }
    int64_t asyncCalls() const
    {
        return async_calls_;
    }

  private:
    struct Request;
    struct Caller {
        tenrec_peer from;
        tenrec_route route;
        int64_t id;
    };

    void refuse(const Caller &caller, const char *why);
    void run(const Caller &caller, const c10::intrusive_ptr<Message> &request,
             std::vector<c10::Stream> streams);
    void reply(const Caller &caller, rpc::JitFuture &future);
    void send(const Caller &caller, c10::intrusive_ptr<Message> response);

    Pool &pool_;
    const rpc::RequestCallback &functions_;
    const Devices &devices_;
    const bool proves_;
    std::shared_mutex lock_; // guards the next: shared by its users
    tenrec_chain *backend_ = nullptr;
    std::atomic<int64_t> calls_{ 0 }, async_calls_{ 0 }, refused_calls_{ 0 };
};

} // namespace tenrec_torch
