// SPDX-License-Identifier: Apache-2.0
// pool_test.cc - the threads of tenrec_torch, without torch's agent around them.
#include <Python.h>

#include "pool.h"

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <utility>

using tenrec_torch::Pool;

namespace
{

constexpr unsigned TASKS = 6; // more than answers have threads
constexpr std::chrono::seconds LIMIT(10);

// Ends when so many have come, or at the limit.
class Meeting
{
  public:
    void come()
    {
        std::unique_lock<std::mutex> hold(lock_);

        if (++came_ == TASKS)
            all_.notify_all();
        all_.wait_for(hold, LIMIT, [this] { return came_ == TASKS; });
    }

    unsigned came()
    {
        std::lock_guard<std::mutex> hold(lock_);

        return came_;
    }

    // Whether all came.
    bool wait()
    {
        std::unique_lock<std::mutex> hold(lock_);

        return all_.wait_for(hold, LIMIT, [this] { return came_ == TASKS; });
    }

  private:
    std::mutex lock_;
    std::condition_variable all_;
    unsigned came_ = 0;
};

struct Guest : Pool::Task {
    explicit Guest(Meeting &meeting) : meeting(meeting)
    {
    }

    void run() override
    {
        meeting.come();
    }

    Meeting &meeting;
};

// The reading thread queues all tasks in one round: no task has begun before the last is queued.
bool tasks_that_wait_for_each_other_begin_when_they_came_at_once()
{
    Meeting meeting;
    Pool pool(1);

    pool.read([&pool, &meeting, first = true](const tenrec_wait &) mutable {
        for (unsigned i = 0; first && i < TASKS; i++)
            pool.run(Pool::ANSWERS, std::make_unique<Guest>(meeting));
        return std::exchange(first, false);
    });
    const bool met = meeting.wait();
    if (!met)
        std::printf("# %u of %u began\n", meeting.came(), TASKS);
    return pool.stop(LIMIT) == 0 && met;
}

} // namespace

int main()
{
    Py_InitializeEx(0);
    PyEval_SaveThread(); // the threads of the pool take the GIL
    const bool ok = tasks_that_wait_for_each_other_begin_when_they_came_at_once();
    std::printf("1..1\n%sok 1 - tasks_that_wait_for_each_other_begin_when_they_came_at_once\n",
                ok ? "" : "not ");
    return ok ? 0 : 1;
}
