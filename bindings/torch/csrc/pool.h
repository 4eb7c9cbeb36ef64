/* SPDX-License-Identifier: Apache-2.0 */
// pool.h - the threads that run Python: requests of others, and what waits for
// answers of ours.
//
// Threads come with the work and go when there was none for a while. Answers
// have threads of their own beside those of requests, so that a request that
// waits for an answer gets it. A thread cannot tell that the function it runs
// waits for something; so when tasks wait and none of their lane begins for
// a moment, one more thread is made: nested calls end with one configured thread.
//
// One thread more reads what comes, and runs the first task of it by itself: to wake
// another thread for it takes longer than most tasks do.
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
        // Of tasks with the same number one begins when the one before has ended, or has run
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

    // From any thread. After stop the task is run by its caller.
    void run(Lane lane, std::unique_ptr<Task> task);

    // Begins to read by `lead`, which is tenrec_backend_lead, until that returns false.
    using Lead = std::function<bool(const tenrec_wait &)>;
    void read(Lead lead);

    // Runs what is queued and waits for the threads; returns how many still ran
    // at the end of the limit. Those are left alone. Without the GIL; not from a
    // thread of the pool.
    unsigned stop(std::chrono::milliseconds limit);

    // Of those for requests.
    unsigned size() const;
    unsigned idle() const;

    struct State; // outlives the pool as long as a thread of it runs

  private:
    std::shared_ptr<State> state_;
};

} // namespace tenrec_torch
