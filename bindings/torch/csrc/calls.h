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
    uint64_t deadline_ns; // CLOCK_MONOTONIC; 0: none
    std::chrono::milliseconds timeout;
    rpc::worker_id_t to;
    c10::intrusive_ptr<Message> request{}; // where it may make a value on this very worker
    Pool::Lane lane = Pool::ANSWERS;       // of the callbacks of the future
};

// The thread that removes a call ends it: by its answer, an error, its deadline or the
// loss of a worker, exactly once. From any thread.
class Calls
{
  public:
    using Deadline = std::chrono::steady_clock::time_point;

    // proves   members have to prove that they belong to the group
    Calls(Pool &pool, const Devices &devices, bool proves)
        : pool_(pool), devices_(devices), proves_(proves)
    {
    }

    // Returns the id of the answer. Waits while a Count exists.
    int64_t begin(Call call);

    // Ends the call, and runs the callbacks of its future: here, or on the pool. Tensors of the
    // response are ready on `streams`.
    void end(Call &call, const c10::intrusive_ptr<Message> &response, const std::string &error,
             const std::vector<c10::Stream> &streams = {});
    void fail(Call call, std::string text);

    // Returns false if the call has ended, or another thread has removed it.
    bool take(int64_t id, Call &ret);
    // The same for an answer of `from`; returns false also if the call went to another worker.
    bool takeFrom(int64_t id, tenrec_peer from, Call &ret);
    // Returns nullptr for an answer that may be unpickled.
    const char *refusalOf(const tenrec_msg &msg) const;
    // Ends the call that `msg` of `from` answers; takes msg. An answer is as much code as a
    // request: where members prove themselves only one of a proved connection is unpickled.
    void answer(tenrec_peer from, tenrec_msg *msg);
    void failAll(const std::string &text);
    void failThoseTo(rpc::worker_id_t to, const std::string &text);
    // Removes the expired calls. Returns the next deadline; 0: none.
    uint64_t failLate(uint64_t now_ns);
    // The error of an expired call.
    static std::string lateText(const Call &call);

    // The number of calls that have begun and whose callbacks have not all run.
    int64_t open() const;
    // The number of calls to one worker without an answer.
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

    static void complete(Call &call, const c10::intrusive_ptr<Message> &response,
                         const std::vector<c10::Stream> &streams);
    static void fail(Call &call, const std::exception_ptr &why);
    bool takeIf(int64_t id, const rpc::worker_id_t *from, Call &ret);
    template <class Which> std::vector<Call> takeThose(Which which);

    Pool &pool_;
    const Devices &devices_;
    const bool proves_;
    mutable std::mutex lock_; // guards all that follows
    std::condition_variable none_, counted_;
    bool counting_ = false;
    std::unordered_map<int64_t, Call> pending_;
    int64_t next_id_ = 0, open_ = 0;
};

} // namespace tenrec_torch
