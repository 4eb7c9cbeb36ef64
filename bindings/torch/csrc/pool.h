/* SPDX-License-Identifier: Apache-2.0 */
// pool.h - the threads that run Python: requests of other workers, and callbacks of this
// worker's calls.
//
// Threads start on demand and end when idle for a while. Answers have threads of their
// own beside those of requests, so that a request that waits for an answer gets it. A
// blocked function cannot be detected; so when tasks are queued and none of their lane
// begins for a moment, the pool adds threads: nested calls complete even with one
// configured thread.
//
// One more thread reads messages and runs the first task itself: waking another thread
// takes longer than most tasks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <tenrec/agent.h>

namespace tenrec_torch
{

class Pool
{
  public:
    struct Task {
        virtual ~Task() = default;
        virtual void run() = 0; // throws nothing
        // A task begins when the previous task with the same number has ended, or has run
        // for a moment. -1: at once.
        virtual int order() const
        {
            return -1;
        }
        Task *next = nullptr;
    };
    enum Lane { ANSWERS, REQUESTS };

    explicit Pool(unsigned num_request_threads);
    ~Pool(); // as stop with no time left

    // From any thread. After stop the caller runs the task.
    void run(Lane lane, std::unique_ptr<Task> task);

    // Starts to read with `lead` (tenrec_chain_lead), until that returns false.
    using Lead = std::function<bool(const tenrec_wait &)>;
    void read(Lead lead);

    // Runs the queued tasks and waits for the threads; returns the number of threads that
    // still run at the limit, which are abandoned. Without the GIL; not from a thread of
    // the pool.
    unsigned stop(std::chrono::milliseconds limit);

    // Of the threads for requests.
    unsigned size() const;
    unsigned idle() const;

    struct State; // outlives the pool as long as a thread of it runs

  private:
    std::shared_ptr<State> state_;
};

} // namespace tenrec_torch
