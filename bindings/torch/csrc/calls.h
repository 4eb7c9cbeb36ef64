/* SPDX-License-Identifier: Apache-2.0 */
// calls.h - outstanding calls of this worker.
#pragma once

#include "message.h"
#include "pool.h"

#include <condition_variable>
#include <mutex>
#include <torch/csrc/distributed/rpc/rpc_agent.h>
#include <unordered_map>

namespace tenrec_torch
{

namespace rpc = torch::distributed::rpc;

struct Call {
    c10::intrusive_ptr<rpc::JitFuture> future;
    std::chrono::milliseconds timeout;
    rpc::worker_id_t to;
    c10::intrusive_ptr<Message> request{}; // where it may make a value on this very worker
    Pool::Lane lane = Pool::ANSWERS;       // of the callbacks of the future
};

// The chain ends a call exactly once (tenrec_chain_call). From any thread.
class Calls
{
  public:
    using Deadline = std::chrono::steady_clock::time_point;

    // proves   members have to prove that they belong to the group
    Calls(Pool &pool, const Devices &devices, bool proves)
        : pool_(pool), devices_(devices), proves_(proves)
    {
    }

    // Sends a request, which is taken. Waits while a Count exists. The callbacks of the future of a
    // send that fails at once run before the return: the owner of a reference to itself would wait
    // for ever for a message that was never sent.
    void send(tenrec_chain *chain, Call call, tenrec_msg *request);
    // Returns nullptr for an answer that may be unpickled. An answer is as much code as a
    // request: where members prove themselves only one of a proved connection is unpickled.
    const char *refusalOf(const tenrec_msg &msg) const;

    // The number of calls that have begun and whose callbacks have not all run.
    int64_t open() const;
    // Those to one worker.
    int64_t openTo(rpc::worker_id_t to) const;
    // Returns false if calls are left at the deadline.
    bool waitUntilNone(Deadline until);

    // No call begins while a Count exists.
    class Count
    {
      public:
        explicit Count(Calls &calls);
        ~Count();
        Count(const Count &) = delete;
        Count &operator=(const Count &) = delete;

        int64_t open;

      private:
        Calls &calls_;
    };

  private:
    struct Answer;

    // Ends the call, and runs the callbacks of its future. Tensors of the response are ready on
    // `streams`.
    void end(Call &call, const c10::intrusive_ptr<Message> &response, const std::string &error,
             const std::vector<c10::Stream> &streams = {});
    static void complete(Call &call, const c10::intrusive_ptr<Message> &response,
                         const std::vector<c10::Stream> &streams);
    static void fail(Call &call, const std::exception_ptr &why);
    static void onAnswer(void *arg, tenrec_msg *msg, const tenrec_error *why) noexcept;

    Pool &pool_;
    const Devices &devices_;
    const bool proves_;
    mutable std::mutex lock_; // guards all that follows
    std::condition_variable none_, counted_;
    bool counting_ = false;
    std::unordered_map<rpc::worker_id_t, int64_t> open_to_;
    int64_t open_ = 0;
};

} // namespace tenrec_torch
