// tensorpipe_peer.cc - the same work on libtensorpipe, transport uv and channel basic.
//
//     tensorpipe_peer latency|rate|bandwidth
//
// latency    a caller that blocks until its answer is there
// rate       64 in flight; the next one is written from the callback of an answer
// bandwidth  a 64 MiB tensor into a buffer that is used again, then 64 bytes back
//
// Its uv transport sleeps while nothing happens, so this compares with "sleep".
#include "pair.h"

#include <atomic>
#include <condition_variable>
#include <cstdio>
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

std::shared_ptr<tp::Context> make_context()
{
    auto c = std::make_shared<tp::Context>();

    c->registerTransport(0, "uv", tp::transport::uv::create());
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

class Callee
{
  public:
    explicit Callee(std::shared_ptr<tp::Pipe> pipe) : pipe_(std::move(pipe)), into_(PAIR_LARGE, 1)
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
        bool large = !d.tensors.empty();

        a.payloads.resize(d.payloads.size());
        for (auto &p : a.payloads)
            p.data = small_;
        a.tensors.resize(d.tensors.size());
        for (auto &t : a.tensors)
            t.buffer = tp::CpuBuffer{ .ptr = into_.data() };
        pipe_->read(a, [this, large](const tp::Error &e) {
            check(e, "read");
            if (large && !checked_.exchange(true) && !pair_check(into_.data(), PAIR_LARGE)) {
                fprintf(stderr, "bench: tensorpipe: the bytes arrived changed\n");
                _exit(1);
            }
            pipe_->write(small_message(ack_), [](const tp::Error &e2) { check(e2, "write"); });
        });
    }

    std::shared_ptr<tp::Pipe> pipe_;
    std::vector<unsigned char> into_;
    unsigned char small_[PAIR_SMALL] = {}, ack_[PAIR_SMALL] = {};
    std::atomic<bool> checked_{ false };
    std::promise<void> end_;
};

class Caller
{
  public:
    explicit Caller(std::shared_ptr<tp::Pipe> pipe) : pipe_(std::move(pipe))
    {
    }

    // One message there and its answer back; blocks.
    void call(unsigned char *tensor)
    {
        send(tensor);
        answer([this] { finish(1); });
        wait(1);
    }

    void rate(size_t calls)
    {
        left_ = calls - PAIR_INFLIGHT;
        for (size_t i = 0; i < PAIR_INFLIGHT; i++)
            one();
        wait(calls);
    }

  private:
    void one()
    {
        send(nullptr);
        answer([this] {
            if (left_.fetch_sub(1) > 0)
                one();
            finish(1);
        });
    }

    void send(unsigned char *tensor)
    {
        tp::Message m;

        if (tensor) {
            tp::Message::Tensor t;
            t.buffer = tp::CpuBuffer{ .ptr = tensor };
            t.length = PAIR_LARGE;
            m.tensors.push_back(t);
        } else {
            m = small_message(out_);
        }
        pipe_->write(std::move(m), [](const tp::Error &e) { check(e, "write"); });
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

    void finish(size_t n)
    {
        std::lock_guard<std::mutex> hold(mutex_);
        done_ += n;
        changed_.notify_one();
    }

    void wait(size_t n)
    {
        std::unique_lock<std::mutex> hold(mutex_);
        changed_.wait(hold, [&] { return done_ >= n; });
        done_ -= n;
    }

    std::shared_ptr<tp::Pipe> pipe_;
    unsigned char out_[PAIR_SMALL] = {}, in_[PAIR_SMALL] = {};
    std::atomic<long> left_{ 0 };
    std::mutex mutex_;
    std::condition_variable changed_;
    size_t done_ = 0;
};

// The callee tells its address through the pipe.
int callee_main(void *arg)
{
    int fd = *static_cast<int *>(arg);
    auto context = make_context();
    auto listener = context->listen({ "uv://127.0.0.1" });
    std::string url = listener->url("uv");
    std::promise<std::shared_ptr<tp::Pipe>> accepted;

    if (write(fd, url.c_str(), url.size() + 1) != static_cast<ssize_t>(url.size() + 1))
        return 1;
    listener->accept([&](const tp::Error &e, std::shared_ptr<tp::Pipe> p) {
        check(e, "accept");
        accepted.set_value(std::move(p));
    });
    Callee c(accepted.get_future().get());
    c.serve();
    context->join();
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    struct pair_result r = {};
    struct samples s;
    char url[256] = "";
    int fd[2];

    r.peer = "tensorpipe";
    r.mode = argc == 2 ? argv[1] : "";
    r.progress = "sleep";
    r.size_bytes = PAIR_SMALL;
    r.inflight = 1;
    bool large = !strcmp(r.mode, "bandwidth"), rate = !strcmp(r.mode, "rate");
    if (!large && !rate && strcmp(r.mode, "latency") != 0) {
        fprintf(stderr, "usage: tensorpipe_peer latency|rate|bandwidth\n");
        return 2;
    }
    if (large)
        r.size_bytes = PAIR_LARGE;
    if (rate)
        r.inflight = PAIR_INFLIGHT;
    r.calls = pair_calls(r.mode);
    size_t warm = pair_warm(r.mode);
    if (pipe(fd) || samples_init(&s, r.calls))
        pair_die("pipe");
    pid_t p = pair_fork(callee_main, &fd[1]);
    close(fd[1]);
    if (read(fd[0], url, sizeof url - 1) <= 0)
        pair_die("the callee told no address");

    auto context = make_context();
    auto pipe = context->connect(url);
    std::vector<unsigned char> from(large ? PAIR_LARGE : 0);
    pair_fill(from.data(), from.size());
    {
        Caller c(pipe);
        uint64_t cpu, begin;

        if (rate)
            c.rate(warm);
        cpu = pair_cpu_ns();
        begin = samples_now_ns();
        if (rate) {
            c.rate(r.calls);
            r.wall_ns = samples_now_ns() - begin;
        } else {
            for (size_t i = 0; i < warm + r.calls; i++) {
                uint64_t t = samples_now_ns();

                c.call(large ? from.data() : nullptr);
                if (i >= warm)
                    samples_add(&s, samples_now_ns() - t);
            }
        }
        cpu = pair_cpu_ns() - cpu;
        pipe->close();
        context->join();
        if (!pair_join(p))
            return 1;
        r.cpu_us_per_call = static_cast<double>(cpu + pair_children_cpu_ns()) / 1e3 /
                            static_cast<double>(warm + r.calls);
    }
    pair_print(&r, &s);
    samples_finish(&s);
    return 0;
}
