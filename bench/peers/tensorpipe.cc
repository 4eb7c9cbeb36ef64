// SPDX-License-Identifier: Apache-2.0
// tensorpipe.cc - libtensorpipe, the library under torch.distributed.rpc.
//
//     tensorpipe_peer latency|rate|bandwidth|drop sleep uv
//     tensorpipe_peer latency|rate|bandwidth|drop busy shm_basic|shm_cma
//
// The caller of `latency` blocks for each answer; with many in flight the callback of
// an answer writes the next message. The uv transport sleeps when idle; the thread of
// the shm transport never does.
#include "../driver.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <tensorpipe/tensorpipe.h>
#include <unistd.h>
#include <vector>

namespace tp = tensorpipe;

namespace
{

void check(const tp::Error &e, const char *what)
{
    if (!e)
        return;
    fprintf(stderr, "bench: tensorpipe: %s: %s\n", what, e.what().c_str());
    _exit(1);
}

bool is_shm(const struct trial *t)
{
    return !strncmp(t->via, "shm", 3);
}

std::shared_ptr<tp::Context> make_context(const struct trial *t)
{
    auto c = std::make_shared<tp::Context>();

    if (is_shm(t))
        c->registerTransport(0, "shm", tp::transport::shm::create());
    else
        c->registerTransport(0, "uv", tp::transport::uv::create());
    if (!strcmp(t->via, "shm_cma"))
        c->registerChannel(0, "cma", tp::channel::cma::create());
    else
        c->registerChannel(0, "basic", tp::channel::basic::create());
    return c;
}

// A message of one payload; `data` must live until it is written.
tp::Message small_message(void *data)
{
    tp::Message m;
    tp::Message::Payload p;

    p.data = data;
    p.length = PAIR_SMALL;
    m.payloads.push_back(p);
    return m;
}

// ---- the callee -------------------------------------------------------------------

class Callee
{
  public:
    Callee(const struct trial *t, std::shared_ptr<tp::Pipe> pipe)
        : trial_(t), pipe_(std::move(pipe)), is_new_(!strcmp(t->mode, "drop")),
          into_(is_new_ ? nullptr : pair_memory(t->size, false))
    {
    }

    // Answers every message with 64 bytes until the caller closes the pipe.
    void serve()
    {
        next();
        end_.get_future().wait();
    }

  private:
    void next()
    {
        pipe_->readDescriptor([this](const tp::Error &e, tp::Descriptor d) {
            if (e) {
                end_.set_value();
                return;
            }
            take(d);
            next();
        });
    }

    void take(const tp::Descriptor &d)
    {
        tp::Allocation a;
        void *into = into_;

        a.payloads.resize(d.payloads.size());
        for (auto &p : a.payloads)
            p.data = small_;
        a.tensors.resize(d.tensors.size());
        if (is_new_ && !a.tensors.empty())
            into = mmap(nullptr, trial_->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0);
        for (auto &t : a.tensors)
            t.buffer = tp::CpuBuffer{ .ptr = into };
        pipe_->read(a, [this, into, large = !a.tensors.empty()](const tp::Error &e) {
            check(e, "read");
            if (large && first_.exchange(false))
                pair_expect("tensorpipe", into, trial_->size);
            if (large && is_new_)
                munmap(into, trial_->size);
            pipe_->write(small_message(answer_), [](const tp::Error &e2) { check(e2, "write"); });
        });
    }

    const struct trial *trial_;
    std::shared_ptr<tp::Pipe> pipe_;
    bool is_new_; // the memory of each tensor
    void *into_;
    unsigned char small_[PAIR_SMALL] = {}, answer_[PAIR_SMALL] = {};
    std::atomic<bool> first_{ true };
    std::promise<void> end_;
};

int serve(struct trial *t)
{
    auto context = make_context(t);
    auto listener = context->listen({ is_shm(t) ? "shm://" : "uv://127.0.0.1" });
    std::string url = listener->url(is_shm(t) ? "shm" : "uv");
    std::promise<std::shared_ptr<tp::Pipe>> accepted;

    listener->accept([&](const tp::Error &e, std::shared_ptr<tp::Pipe> p) {
        check(e, "accept");
        accepted.set_value(std::move(p));
    });
    driver_say(t, url.c_str(), url.size() + 1);
    Callee c(t, accepted.get_future().get());
    c.serve();
    context->join();
    return 0;
}

// ---- the caller -------------------------------------------------------------------

class Caller
{
  public:
    Caller(const struct trial *t, const std::string &url)
        : context_(make_context(t)), pipe_(context_->connect(url)), size_(t->size),
          large_(!strcmp(t->mode, "bandwidth") || !strcmp(t->mode, "drop")),
          from_(pair_memory(t->size, false))
    {
        pair_fill(from_, size_);
    }

    void call()
    {
        send();
        answer([this] { finish(); });
        wait(1);
    }

    void flood(size_t calls)
    {
        left_ = static_cast<long>(calls) - static_cast<long>(PAIR_INFLIGHT);
        for (size_t i = 0; i < PAIR_INFLIGHT; i++)
            one();
        wait(calls);
    }

    // An answer may arrive before the library has completed the request.
    void close()
    {
        std::unique_lock<std::mutex> hold(mutex_);

        closing_ = true;
        changed_.wait(hold, [&] { return writes_ == 0; });
        hold.unlock();
        pipe_->close();
        context_->join();
    }

  private:
    void one()
    {
        send();
        answer([this] {
            if (left_.fetch_sub(1) > 0)
                one();
            finish();
        });
    }

    void send()
    {
        tp::Message m;

        if (large_) {
            tp::Message::Tensor t;
            t.buffer = tp::CpuBuffer{ .ptr = from_ };
            t.length = size_;
            m.tensors.push_back(t);
        } else {
            m = small_message(out_);
        }
        writes_++;
        pipe_->write(std::move(m), [this](const tp::Error &e) {
            check(e, "write");
            written();
        });
    }

    void written()
    {
        if (--writes_ || !closing_)
            return;
        std::lock_guard<std::mutex> hold(mutex_);
        changed_.notify_one();
    }

    void answer(std::function<void()> fn)
    {
        pipe_->readDescriptor([this, fn = std::move(fn)](const tp::Error &e, tp::Descriptor d) {
            tp::Allocation a;

            check(e, "read");
            a.payloads.resize(d.payloads.size());
            for (auto &p : a.payloads)
                p.data = in_;
            pipe_->read(a, [fn](const tp::Error &e2) {
                check(e2, "read");
                fn();
            });
        });
    }

    void finish()
    {
        std::lock_guard<std::mutex> hold(mutex_);
        if (++done_ >= wanted_)
            changed_.notify_one();
    }

    void wait(size_t n)
    {
        std::unique_lock<std::mutex> hold(mutex_);
        wanted_ = n;
        changed_.wait(hold, [&] { return done_ >= n; });
        done_ -= n;
        wanted_ = SIZE_MAX;
    }

    std::shared_ptr<tp::Context> context_;
    std::shared_ptr<tp::Pipe> pipe_;
    size_t size_;
    bool large_;
    void *from_;
    unsigned char out_[PAIR_SMALL] = {}, in_[PAIR_SMALL] = {};
    std::atomic<long> left_{ 0 }, writes_{ 0 };
    std::atomic<bool> closing_{ false };
    std::mutex mutex_;
    std::condition_variable changed_;
    size_t done_ = 0, wanted_ = SIZE_MAX;
};

void start(struct trial *t)
{
    char url[256];

    driver_hear(t, url, sizeof url);
    t->state = new Caller(t, url);
}

void call(struct trial *t)
{
    static_cast<Caller *>(t->state)->call();
}

void flood(struct trial *t, size_t n)
{
    static_cast<Caller *>(t->state)->flood(n);
}

void end(struct trial *t)
{
    static_cast<Caller *>(t->state)->close();
}

constexpr struct way make_way(const char *via, const char *progress)
{
    return { .peer = "tensorpipe",
             .via = via,
             .modes = "latency rate bandwidth drop",
             .progress = progress,
             .serve = serve,
             .open = start,
             .call = call,
             .flood = flood,
             .close = end };
}

} // namespace

int main(int argc, char **argv)
{
    const struct way ways[] = { make_way("uv", "sleep"), make_way("shm_basic", "busy"),
                                make_way("shm_cma", "busy") };

    return driver_main(argc, argv, ways, sizeof ways / sizeof ways[0]);
}
