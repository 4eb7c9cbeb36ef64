/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/tenrec.hpp - workers, calls and tensors for C++17 and later; header only.
 *
 *     tenrec::worker w;
 *     w.on("add", [](std::int64_t a, std::int64_t b) { return a + b; });
 *     w.init();
 *     auto sum = w.call<std::int64_t>("worker0", "add", 40, 2);
 *     w.shutdown();
 *
 * An error is an exception of class tenrec::error. If an exception leaves a function, it is the
 * error of the call. Each class has get(), its handle for the C interface, which has all other
 * functions. A member has the threads and errors of its C function.
 */
#ifndef TENREC_TENREC_HPP
#define TENREC_TENREC_HPP

#include <atomic>
#include <chrono>
#include <tenrec/value.hpp>

namespace tenrec
{

/* ---- functions ------------------------------------------------------------ */

/* The call of a function: its optional first parameter, as `const tenrec::caller &`. */
class caller
{
  public:
    explicit caller(tenrec_call *c) noexcept : c_(c) {}
    tenrec_worker_info from() const noexcept { return tenrec_call_from(c_); }
    bool canceled() const noexcept { return tenrec_call_canceled(c_); }
    std::chrono::milliseconds time_left() const noexcept
    {
        return std::chrono::milliseconds(tenrec_call_time_left(c_));
    }
    tenrec_call *get() const noexcept { return c_; }

  private:
    tenrec_call *c_;
};

template <class F> struct signature : signature<decltype(&F::operator())> {
};
template <class R, class... A> struct signature<R (*)(A...)> {
    using result = R;
    using args = std::tuple<std::decay_t<A>...>;
};
template <class R, class... A> struct signature<R (*)(A...) noexcept> : signature<R (*)(A...)> {
};
template <class C, class R, class... A> struct signature<R (C::*)(A...)> : signature<R (*)(A...)> {
};
template <class C, class R, class... A>
struct signature<R (C::*)(A...) const> : signature<R (*)(A...)> {
};
template <class C, class R, class... A>
struct signature<R (C::*)(A...) noexcept> : signature<R (*)(A...)> {
};
template <class C, class R, class... A>
struct signature<R (C::*)(A...) const noexcept> : signature<R (*)(A...)> {
};

/* The error of the exception that is being handled, as the error of a C function. */
inline tenrec_status caught(tenrec_error *err) noexcept
{
    try {
        throw;
    } catch (const error &e) {
        return tenrec_fail(err, e.status(), "%s", e.what());
    } catch (const std::bad_alloc &) {
        return tenrec_fail(err, TENREC_ENOMEM, "out of memory");
    } catch (const std::exception &e) {
        return tenrec_fail(err, TENREC_EREMOTE, "%s", e.what());
    } catch (...) {
        return tenrec_fail(err, TENREC_EREMOTE, "an exception that is no std::exception");
    }
}

/* A function of the program, and how many threads are in it. */
struct function_base {
    std::atomic<unsigned> running{ 0 };
    virtual ~function_base() = default;
};

template <class F> class function final : public function_base
{
  public:
    explicit function(F f) : f_(std::move(f)) {}

    static tenrec_status run(tenrec_call *c, void *arg, tenrec_error *err) noexcept
    {
        auto *self = static_cast<function *>(arg);
        tenrec_status st;

        self->running++;
        try {
            st = self->answer(c, err);
        } catch (...) {
            st = caught(err);
        }
        self->running--;
        return st;
    }

  private:
    using result = typename signature<F>::result;

    template <class First, class... A>
    auto invoke(tenrec_call *c, const tenrec_value *v, std::size_t n, std::tuple<First, A...> *)
    {
        if constexpr (std::is_same_v<First, caller>) {
            return std::apply(
                [&](auto &&...a) { return f_(caller(c), std::forward<decltype(a)>(a)...); },
                read_items<std::tuple<A...>>(v, n, "argument", std::index_sequence_for<A...>()));
        } else {
            return std::apply(f_, read_items<std::tuple<First, A...>>(
                                      v, n, "argument", std::index_sequence_for<First, A...>()));
        }
    }
    auto invoke(tenrec_call *, const tenrec_value *v, std::size_t n, std::tuple<> *)
    {
        read_items<std::tuple<>>(v, n, "argument", std::index_sequence<>());
        return f_();
    }

    tenrec_status answer(tenrec_call *c, tenrec_error *err)
    {
        std::size_t n = 0;
        const tenrec_value *v = tenrec_call_args(c, &n);
        auto *types = static_cast<typename signature<F>::args *>(nullptr);

        if constexpr (std::is_void_v<result>) {
            invoke(c, v, n, types);
            return TENREC_OK;
        } else {
            const auto result_value = invoke(c, v, n, types);
            return tenrec_call_return(c, &argument(result_value).get(), err);
        }
    }

    F f_;
};

/* A call from receive(). It is answered once, at the latest by the destructor. */
class request
{
  public:
    explicit request(tenrec_call *c) noexcept : c_(c) {}
    request(request &&o) noexcept : c_(std::exchange(o.c_, nullptr)) {}
    request &operator=(request &&o) noexcept
    {
        std::swap(c_, o.c_);
        return *this;
    }
    ~request()
    {
        if (c_)
            fail(error(TENREC_ECANCELED, "the call was received, and not answered"));
    }

    tenrec_worker_info from() const noexcept { return tenrec_call_from(c_); }
    template <class... A> std::tuple<A...> args() const
    {
        std::size_t n = 0;
        const tenrec_value *v = tenrec_call_args(c_, &n);

        return read_items<std::tuple<A...>>(v, n, "argument", std::index_sequence_for<A...>());
    }
    void reply() { tenrec_call_finish(std::exchange(c_, nullptr), nullptr); }
    template <class T> void reply(const T &result)
    {
        tenrec_error e;

        check(tenrec_call_return(c_, &argument(result).get(), &e), e);
        reply();
    }
    void fail(const error &why) noexcept
    {
        tenrec_call_finish(std::exchange(c_, nullptr), &why.get());
    }
    tenrec_call *get() const noexcept { return c_; }

  private:
    tenrec_call *c_;
};

/* ---- calls ---------------------------------------------------------------- */

using milliseconds = std::chrono::milliseconds;

/* The callee and the limit of the call; 0 means the limit of the worker. */
struct target {
    std::string name;
    milliseconds timeout{ TENREC_TIMEOUT_DEFAULT };

    target(std::string n, milliseconds t = milliseconds(TENREC_TIMEOUT_DEFAULT)) // NOLINT: implicit
        : name(std::move(n)), timeout(t)
    {
    }
    target(const char *n) : name(n) {} // NOLINT: implicit
};

/* A share of the future of a call with the result type R. */
template <class R> class future
{
  public:
    explicit future(tenrec_future *f) noexcept : f_(f) {}
    future(const future &o) noexcept : f_(tenrec_future_share(o.f_)) {}
    future(future &&o) noexcept : f_(std::exchange(o.f_, nullptr)) {}
    future &operator=(future o) noexcept
    {
        std::swap(f_, o.f_);
        return *this;
    }
    ~future() { tenrec_future_drop(f_); }

    bool done() const noexcept { return tenrec_future_done(f_); }
    void cancel() noexcept { tenrec_future_cancel(f_); }
    /* Waits, and returns the result. Borrowed parts of it live as long as the future. */
    R result(milliseconds limit = milliseconds(TENREC_TIMEOUT_DEFAULT)) const
    {
        tenrec_error e;

        check(tenrec_future_wait(f_, limit.count(), &e), e);
        return read<R>(*tenrec_future_value(f_));
    }
    tenrec_future *get() const noexcept { return f_; }

  private:
    tenrec_future *f_;
};

/* ---- workers -------------------------------------------------------------- */

/* A worker of a group. The destructor drops it. */
class worker
{
  public:
    /* Uses the configuration in TENREC_CONFIG, or the built-in default. */
    worker() : worker(nullptr) {}
    explicit worker(const tenrec_config *c)
    {
        tenrec_error e;

        check(tenrec_worker_new(c, &w_, &e), e);
    }
    worker(const worker &) = delete;
    worker &operator=(const worker &) = delete;
    ~worker()
    {
        tenrec_worker_drop(w_); /* waits for running functions, but not for ever */
        for (auto &f : functions_)
            if (f->running != 0)
                (void)f.release(); /* it still runs: no thread may free it */
    }

    /* Registers a function object. Its parameters are the arguments, after an optional
     * `const tenrec::caller &`. Its result is the answer. */
    template <class F> worker &on(const char *name, F f, std::uint32_t flags = TENREC_POOL)
    {
        auto made = std::make_unique<function<F>>(std::move(f));
        tenrec_error e;

        if (flags & TENREC_LATER)
            throw error(TENREC_EINVAL, "a function object answers when it returns: use a mailbox");
        functions_.reserve(functions_.size() + 1);
        check(tenrec_worker_register_function(w_, name, &function<F>::run, made.get(), flags, &e),
              e);
        functions_.push_back(std::move(made));
        return *this;
    }
    /* Registers a mailbox for receive. */
    worker &mailbox(const char *name)
    {
        tenrec_error e;

        check(tenrec_worker_register_function(w_, name, nullptr, nullptr, TENREC_MAILBOX, &e), e);
        return *this;
    }

    void init()
    {
        tenrec_error e;

        check(tenrec_init_rpc(w_, &e), e);
    }
    void shutdown(tenrec_shutdown_mode mode = TENREC_GRACEFUL,
                  milliseconds limit = milliseconds(TENREC_TIMEOUT_DEFAULT))
    {
        tenrec_error e;

        check(tenrec_shutdown(w_, mode, limit.count(), &e), e);
    }
    tenrec_peer rank() const noexcept { return tenrec_worker_rank(w_); }
    std::size_t size() const noexcept { return tenrec_worker_size(w_); }

    template <class R = void, class... A> R call(const target &to, const char *fn, const A &...args)
    {
        const auto options = options_of(to);
        tenrec_value *got = nullptr;
        tenrec_error e;

        with(
            [&](const tenrec_value *v) {
                check(tenrec_rpc_sync(w_, to.name.c_str(), fn, v, sizeof...(A), &options, &got, &e),
                      e);
            },
            args...);
        return result<R>(value(got));
    }
    template <class R = void, class... A>
    future<R> async(const target &to, const char *fn, const A &...args)
    {
        const auto options = options_of(to);
        tenrec_future *f = nullptr;
        tenrec_error e;

        with(
            [&](const tenrec_value *v) {
                check(tenrec_rpc_async(w_, to.name.c_str(), fn, v, sizeof...(A), &options, &f, &e),
                      e);
            },
            args...);
        return future<R>(f);
    }
    template <class... A> rref remote(const target &to, const char *fn, const A &...args)
    {
        const auto options = options_of(to);
        tenrec_rref *r = nullptr;
        tenrec_error e;

        with(
            [&](const tenrec_value *v) {
                check(tenrec_remote(w_, to.name.c_str(), fn, v, sizeof...(A), &options, &r, &e), e);
            },
            args...);
        return rref(r);
    }
    request receive(const char *name, milliseconds limit = milliseconds(TENREC_TIMEOUT_DEFAULT))
    {
        tenrec_call *c = nullptr;
        tenrec_error e;

        check(tenrec_worker_receive(w_, name, limit.count(), &c, &e), e);
        return request(c);
    }
    void barrier(milliseconds limit = milliseconds(TENREC_TIMEOUT_DEFAULT))
    {
        tenrec_error e;

        check(tenrec_worker_barrier(w_, nullptr, 0, limit.count(), &e), e);
    }
    tenrec_worker *get() const noexcept { return w_; }

  private:
    static tenrec_call_options options_of(const target &to)
    {
        tenrec_call_options o = {};

        o.size = sizeof o;
        o.timeout_ms = to.timeout.count();
        return o;
    }
    template <class F, class... A> static void with(F f, const A &...args)
    {
        const std::tuple<std::conditional_t<true, argument, A>...> list{ argument(args)... };
        const tenrec_value none = tenrec_value_nil();

        std::apply(
            [&](const auto &...a) {
                const tenrec_value v[] = { a.get()..., none };
                f(v);
            },
            list);
    }
    template <class R> static R result(value got)
    {
        static_assert(!std::is_same_v<R, std::string_view> &&
                          !std::is_same_v<R, const tenrec_value *>,
                      "the result would be borrowed from a value that is gone: take a std::string");
        if constexpr (std::is_same_v<R, value>)
            return got;
        else
            return read<R>(*got);
    }

    tenrec_worker *w_ = nullptr;
    std::vector<std::unique_ptr<function_base>> functions_;
};

} // namespace tenrec

#endif
