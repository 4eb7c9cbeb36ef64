// SPDX-License-Identifier: Apache-2.0
#include "pool.h"

#include "python_thread.h"

#include <ATen/ThreadLocalState.h>
#include <algorithm>
#include <c10/util/Exception.h>
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <time.h>

namespace tenrec_torch
{

namespace
{

constexpr std::chrono::milliseconds STALL(10);     // no task of a lane began: more threads
constexpr std::chrono::microseconds IN_ORDER(300); // so long the next call of a caller waits
constexpr std::chrono::seconds IDLE(5);            // so long a thread waits for work
constexpr unsigned ANSWER_THREADS = 4;

// Restores libtorch's thread state to that of the start of the thread: a thread that has
// profiled once would record nothing any more.
class CleanThread
{
  public:
    CleanThread() : guard_(first())
    {
    }

  private:
    static const at::ThreadLocalState &first()
    {
        thread_local const at::ThreadLocalState state;
        return state;
    }

    const at::ThreadLocalStateGuard guard_;
};

void run_clean(Pool::Task &task)
{
    const CleanThread clean;

    task.run();
}

} // namespace

struct Queue {
    Pool::Task *first = nullptr, **last = &first;
    unsigned queued = 0, running = 0;
    uint64_t begun = 0;
    unsigned configured = 0, limit = 0; // at once; the limit is more while tasks block

    void push(std::unique_ptr<Pool::Task> task)
    {
        *last = task.release();
        last = &(*last)->next;
        queued++;
    }

    std::unique_ptr<Pool::Task> pop()
    {
        std::unique_ptr<Pool::Task> task(first);

        first = task->next;
        queued--;
        if (!first)
            last = &first;
        return task;
    }

    bool ready() const
    {
        return first && running < limit;
    }

    void ended()
    {
        running--;
        if (limit > configured)
            limit--;
    }
};

struct Pool::State {
    std::mutex lock; // guards all
    std::condition_variable work, ended, watch;
    Queue lane[2];
    unsigned threads = 0, idle = 0, woken = 0;
    // The reading thread has a task that it does not run yet: later tasks wait for it.
    bool held = false;
    // The last started task with an order, until its end; and its start time.
    const Pool::Task *young = nullptr;
    int young_order = -1;
    std::chrono::steady_clock::time_point young_since;
    bool waits_in_order = false; // a thread waits until the next task may begin
    bool watched = false, stopping = false;
    bool left = false; // stop has reached its limit and abandoned the threads

    bool waiting() const
    {
        return lane[ANSWERS].first || lane[REQUESTS].first;
    }

    // Queued tasks run before the end, even if all threads are blocked.
    bool needs_watch() const
    {
        return !left && (!stopping || waiting());
    }

    // Returns true if `task` has to wait for the previous task.
    bool is_early(const Pool::Task &task) const
    {
        return young && task.order() == young_order &&
               std::chrono::steady_clock::now() < young_since + IN_ORDER;
    }

    // Returns true if a task may begin now or in a moment.
    bool begins_soon() const
    {
        return !held && (lane[ANSWERS].ready() || lane[REQUESTS].ready());
    }

    void begin(Queue &q, const Pool::Task &task)
    {
        if (task.order() >= 0) {
            young = &task;
            young_order = task.order();
            young_since = std::chrono::steady_clock::now();
        }
        q.running++;
        q.begun++;
    }

    Queue *ready()
    {
        for (Queue &q : lane)
            if (!held && q.ready() && !is_early(*q.first))
                return &q;
        return nullptr;
    }
};

namespace
{

// The task that the reading thread runs itself.
struct Taken {
    Pool::State *pool;
    Queue *lane;
    std::unique_ptr<Pool::Task> task;
    uint32_t done; // it has a task
};

thread_local Taken *reads = nullptr; // this thread, just now

void start_watch(const std::shared_ptr<Pool::State> &s);

void call_thread(const std::shared_ptr<Pool::State> &s);

// A started task. Wakes another thread for the next task now and not earlier: the tasks of
// a burst begin in order, and short tasks need no other thread.
void run(const std::shared_ptr<Pool::State> &s, std::unique_ptr<Pool::Task> task, Queue &lane,
         std::unique_lock<std::mutex> &hold)
{
    if (s->begins_soon())
        call_thread(s);
    else if (!s->held)
        start_watch(s); // there may be more than the limit, and this task may wait for them
    hold.unlock();
    run_clean(*task);
    hold.lock();
    if (s->young == task.get())
        s->young = nullptr;
    lane.ended();
    hold.unlock();
    task.reset();
    hold.lock();
}

// Runs the tasks that may begin now.
void run_ready(const std::shared_ptr<Pool::State> &s, std::unique_lock<std::mutex> &hold)
{
    while (Queue *q = s->ready()) {
        std::unique_ptr<Pool::Task> task = q->pop();
        s->begin(*q, *task);
        run(s, std::move(task), *q, hold);
    }
}

void read(const std::shared_ptr<Pool::State> &s, const Pool::Lead &lead)
{
    Taken taken{ s.get(), nullptr, nullptr, 0 };
    tenrec_wait wait{};
    std::unique_lock<std::mutex> hold(s->lock, std::defer_lock);

    wait.size = sizeof wait;
    wait.wake_fd = -1;
    wait.done = &taken.done;
    for (bool leads = true; leads;) {
        taken.done = 0;
        reads = &taken;
        leads = lead(wait);
        reads = nullptr;
        hold.lock();
        s->held = false;
        if (taken.task)
            run(s, std::move(taken.task), *taken.lane, hold);
        run_ready(s, hold);
        hold.unlock();
    }
}

void serve(const std::shared_ptr<Pool::State> &s)
{
    std::unique_lock<std::mutex> hold(s->lock);

    while (true) {
        run_ready(s, hold);
        if (s->stopping && !s->waiting())
            return;
        if (!s->begins_soon())
            start_watch(s);
        const bool waits = !s->waits_in_order && s->begins_soon();
        s->waits_in_order |= waits;
        s->idle++;
        const auto limit = waits ? std::chrono::microseconds(IN_ORDER) : IDLE;
        const bool late = s->work.wait_for(hold, limit) == std::cv_status::timeout;
        s->idle--;
        if (waits)
            s->waits_in_order = false;
        if (s->woken > 0)
            s->woken--;
        else if (late && !waits)
            return;
    }
}

void thread_main(std::shared_ptr<Pool::State> s, const Pool::Lead &lead)
{
    {
        PythonThread python;
        if (lead)
            read(s, lead);
        else
            serve(s);
    }
    std::lock_guard<std::mutex> hold(s->lock);
    s->threads--;
    s->ended.notify_all();
    s->work.notify_all(); // one that stops looks again
}

void *run_detached(void *arg)
{
    const std::unique_ptr<std::function<void()>> main(static_cast<std::function<void()> *>(arg));

    (*main)();
    return nullptr;
}

// Starts a thread, counted before, that no thread joins. Its stack is that of Tenrec's threads,
// however small the default is. Returns false, and says so once, if the system refuses it.
bool start_detached(const std::shared_ptr<Pool::State> &s, std::function<void()> main)
{
    auto own = std::make_unique<std::function<void()>>(std::move(main));
    pthread_attr_t attr;
    pthread_t thread;

    s->threads++;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, TENREC_THREAD_STACK);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    const int failed = pthread_create(&thread, &attr, run_detached, own.get());
    pthread_attr_destroy(&attr);
    if (failed == 0) {
        own.release();
        return true;
    }
    s->threads--;
    TORCH_WARN_ONCE(
        "TENREC: the system refuses a thread beside ", s->threads,
        " of the pool: functions that wait for other calls may wait until their timeout");
    return false;
}

bool start_thread(const std::shared_ptr<Pool::State> &s, Pool::Lead lead = nullptr)
{
    return start_detached(s, [s, lead = std::move(lead)] { thread_main(s, lead); });
}

// Wakes one thread for the tasks that may begin; that thread wakes the next.
void call_thread(const std::shared_ptr<Pool::State> &s)
{
    if (s->woken > 0 || (s->waits_in_order && !s->ready()))
        return;
    if (s->idle > 0) {
        s->woken++;
        s->work.notify_one();
    } else if (s->threads < s->lane[Pool::ANSWERS].limit + s->lane[Pool::REQUESTS].limit) {
        start_thread(s);
    } else {
        start_watch(s);
    }
}

// Returns the processor time of this process.
std::chrono::nanoseconds processor_time()
{
    timespec used{};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

// Adds threads to a lane whose tasks do not begin: as many as it has where the process is idle, so
// that all are blocked, else one, since the tasks may be slow for want of a processor.
void grow(const std::shared_ptr<Pool::State> &s, Queue &q, bool idle)
{
    const unsigned more = std::min(idle ? std::max(q.running, 1u) : 1u, q.queued);

    q.limit = std::max(q.limit, q.running + more);
    for (unsigned i = 0; i < more && start_thread(s); i++) {
    }
}

// Watches queued tasks, as long as any are left.
void watch_main(std::shared_ptr<Pool::State> s)
{
    std::unique_lock<std::mutex> hold(s->lock);

    for (unsigned quiet = 0; quiet < 20 && s->needs_watch();) {
        const uint64_t begun[] = { s->lane[0].begun, s->lane[1].begun };
        const auto used = processor_time();
        s->watch.wait_for(hold, STALL);
        const bool idle = processor_time() - used < STALL / 10;
        s->held = false; // the reading thread is busy for long
        quiet = s->waiting() ? 0 : quiet + 1;
        for (unsigned i = 0; i < 2 && !s->left; i++) {
            if (s->lane[i].first && s->lane[i].begun == begun[i])
                grow(s, s->lane[i], idle);
        }
    }
    s->watched = false;
    s->threads--;
    s->ended.notify_all();
}

// Starts the watch if tasks are queued.
void start_watch(const std::shared_ptr<Pool::State> &s)
{
    if (s->watched || s->left || !s->waiting())
        return;
    s->watched = true; // before the thread looks
    s->watched = start_detached(s, [s] { watch_main(s); });
}

} // namespace

Pool::Pool(unsigned num_request_threads) : state_(std::make_shared<State>())
{
    Queue *lane = state_->lane;

    lane[ANSWERS].configured = lane[ANSWERS].limit = ANSWER_THREADS;
    lane[REQUESTS].configured = lane[REQUESTS].limit = num_request_threads;
}

Pool::~Pool()
{
    stop(std::chrono::milliseconds(0));
}

void Pool::run(Lane lane, std::unique_ptr<Task> task)
{
    State *s = state_.get();
    std::unique_lock<std::mutex> hold(s->lock);

    if (s->stopping) {
        hold.unlock();
        task->run();
        return;
    }
    Queue &q = s->lane[lane];
    if (reads && reads->pool == s && !reads->task && !q.first && q.running < q.limit &&
        !s->is_early(*task)) {
        s->begin(q, *task);
        reads->lane = &q;
        reads->task = std::move(task);
        reads->done = 1;
        s->held = true;
        return;
    }
    q.push(std::move(task));
    if (q.running >= q.limit)
        start_watch(state_);
    else if (!s->held)
        call_thread(state_);
}

void Pool::read(Lead lead)
{
    std::lock_guard<std::mutex> hold(state_->lock);

    start_thread(state_, std::move(lead));
}

unsigned Pool::stop(std::chrono::milliseconds limit)
{
    State *s = state_.get();
    std::unique_lock<std::mutex> hold(s->lock);

    s->stopping = true;
    s->work.notify_all();
    s->watch.notify_all();
    s->ended.wait_for(hold, limit, [s] { return s->threads == 0; });
    s->left = true;
    return s->threads - s->watched;
}

unsigned Pool::size() const
{
    return state_->lane[REQUESTS].configured;
}

unsigned Pool::idle() const
{
    std::lock_guard<std::mutex> hold(state_->lock);
    const Queue &q = state_->lane[REQUESTS];

    return q.limit - std::min(q.running, q.limit);
}

} // namespace tenrec_torch
