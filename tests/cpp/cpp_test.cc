/* SPDX-License-Identifier: Apache-2.0 */
/* cpp_test.cc - tenrec/tenrec.hpp between the two workers of this process; prints TAP. cpp_test.py
 * compiles it by each compiler in each standard. */
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tenrec/tenrec.hpp>
#include <thread>

namespace
{

int cases, failures;

void is(bool condition, const char *what)
{
    if (condition)
        return;
    std::printf("# not so: %s\n", what);
    failures++;
}
#define IS(condition) is(condition, #condition)

/* Runs `fn`, which throws an error with this status and text. */
template <class F> void throws(tenrec_status status, const char *text, F fn)
{
    try {
        fn();
        std::printf("# no error, expected: %s\n", text);
        failures++;
    } catch (const tenrec::error &e) {
        if (e.status() == status && std::string(e.what()).find(text) != std::string::npos)
            return;
        std::printf("# %s: %s, expected %s: %s\n", tenrec_status_name(e.status()), e.what(),
                    tenrec_status_name(status), text);
        failures++;
    }
}

template <class F> void test(const char *name, F fn)
{
    const int before = failures;

    try {
        fn();
    } catch (const std::exception &e) {
        std::printf("# %s\n", e.what());
        failures++;
    }
    std::printf("%s %d - %s\n", failures == before ? "ok" : "not ok", ++cases, name);
}

using pairs = std::vector<std::tuple<int, std::string>>;

void register_functions(tenrec::worker &w)
{
    w.on("add", [](std::int64_t a, std::int64_t b) { return a + b; });
    w.on("nothing", [] {});
    w.on("identity", [](pairs list) { return list; });
    w.on("small", [](std::int8_t n) { return n; });
    w.on("text", [](std::string_view a, const std::string &b) { return std::string(a) + b; });
    w.on(
        "who", [](const tenrec::caller &c) { return std::string(c.from().name); }, TENREC_INLINE);
    w.on("any", [](tenrec::value v) { return v; });
    w.on("wait", [](const tenrec::caller &c) {
        while (!c.canceled())
            std::this_thread::yield();
    });
    w.on("scale", [](tenrec::tensor<const float> x, double by) {
        tenrec::tensor<float> y{ static_cast<std::int64_t>(x.size()) };

        for (std::size_t i = 0; i < x.size(); i++)
            y[i] = x[i] * static_cast<float>(by);
        return y;
    });
    w.on("throw", [](int what) {
        if (what == 0)
            throw tenrec::error(TENREC_ENOTFOUND, "an error of Tenrec");
        if (what == 1)
            throw std::runtime_error("a standard error");
        if (what == 2)
            throw std::bad_alloc();
        throw what;
    });
    w.mailbox("box");
}

tenrec::config config_of(int rank, const char *store)
{
    auto c = tenrec::make<tenrec::config>(tenrec_config_load, nullptr);
    const std::pair<const char *, std::string> settings[] = {
        { "worker.rank", std::to_string(rank) },
        { "worker.world_size", "2" },
        { "worker.name", "worker" + std::to_string(rank) },
        { "init_method", store },
    };
    tenrec_error e;

    for (const auto &[key, value] : settings)
        tenrec::check(tenrec_config_set(c.get(), key, value.c_str(), &e), e);
    return c;
}

void test_calls(tenrec::worker &w)
{
    test("cpp_call_returns_the_result", [&] {
        IS(w.call<int>("worker0", "add", 40, 2) == 42);
        IS(w.call<std::int64_t>("worker0", "add", std::size_t(3), -5L) == -2);
        w.call("worker0", "nothing");
        IS(w.call<std::string>("worker0", "text", "a", std::string("b\0c", 3)) ==
           std::string("ab\0c", 4));
        IS(w.call<std::string>("worker0", "who") == "worker1");
    });
    test("cpp_call_passes_lists_and_values", [&] {
        const pairs list{ { 1, "one" }, { 2, "two" } };

        IS(w.call<pairs>("worker0", "identity", list) == list);
        IS(w.call<tenrec::value>("worker0", "any", 7)->u.integer == 7);
        IS(!w.call<bool>("worker0", "any", false));
    });
    test("cpp_call_checks_its_arguments_and_its_result", [&] {
        throws(TENREC_EINVAL, "argument 2: is text, expected an integer",
               [&] { w.call("worker0", "add", 1, "x"); });
        throws(TENREC_EINVAL, "takes 2 arguments, got 1", [&] { w.call("worker0", "add", 1); });
        throws(TENREC_EINVAL, "takes 0 arguments, got 1", [&] { w.call("worker0", "nothing", 1); });
        throws(TENREC_EINVAL, "argument 1: is out of range: 300",
               [&] { w.call("worker0", "small", 300); });
        throws(TENREC_EINVAL, "is an integer, expected text",
               [&] { w.call<std::string>("worker0", "add", 1, 2); });
        throws(TENREC_EINVAL, "larger than an int64_t",
               [&] { w.call("worker0", "any", UINT64_MAX); });
        throws(TENREC_ENOFUNCTION, "'worker0' has no function 'ad'",
               [&] { w.call("worker0", "ad"); });
    });
    test("cpp_exceptions_of_a_function_are_the_error_of_its_call", [&] {
        throws(TENREC_ENOTFOUND, "an error of Tenrec", [&] { w.call("worker0", "throw", 0); });
        throws(TENREC_EREMOTE, "a standard error", [&] { w.call("worker0", "throw", 1); });
        throws(TENREC_ENOMEM, "out of memory", [&] { w.call("worker0", "throw", 2); });
        throws(TENREC_EREMOTE, "no std::exception", [&] { w.call("worker0", "throw", 3); });
    });
    test("cpp_futures_end_by_result_limit_and_cancel", [&] {
        auto answer =
            w.async<std::int64_t>({ "worker0", std::chrono::milliseconds(20000) }, "add", 1, 2);
        auto copy = answer, waits = w.async<std::int64_t>("worker0", "wait");

        IS(copy.result() == 3 && answer.done());
        throws(TENREC_ETIMEDOUT, "not done", [&] { waits.result(tenrec::milliseconds(1)); });
        waits.cancel();
        throws(TENREC_ECANCELED, "", [&] { waits.result(); });
    });
}

void test_tensors(tenrec::worker &w)
{
    test("cpp_tensors_are_typed", [&] {
        tenrec::tensor<float> x{ 2, 3 };

        for (float &f : x)
            f = 2;
        const auto y = w.call<tenrec::tensor<const float>>("worker0", "scale", x, 1.5);
        IS(y.size() == 6 && y[0] == 3 && y[5] == 3);
        IS(x.shape().size() == 2 && x.shape()[1] == 3);
        const tenrec::span<float> all = x;
        IS(all.size() == 6 && all.data() == x.data());
        throws(TENREC_EINVAL, "argument 1: the tensor is float64 of [2], expected float32",
               [&] { w.call("worker0", "scale", tenrec::tensor<double>{ 2 }, 1); });
        throws(TENREC_EINVAL, "is float32 of [2,3], expected int32",
               [&] { tenrec::tensor<std::int32_t> z{ tenrec::any_tensor(x) }; });
        throws(TENREC_EINVAL, "negative", [&] { tenrec::tensor<float> z{ -1 }; });
    });
    test("cpp_tensors_share_their_elements", [&] {
        tenrec::any_tensor any;
        {
            tenrec::tensor<std::int64_t> x{ 1 };
            x[0] = 7;
            any = x;
        }
        IS(tenrec::tensor<std::int64_t>(any, 1)[0] == 7);
        IS(tenrec_dtype_equal(tenrec::dtype_of<bool>(), TENREC_BOOL));
        IS(tenrec_dtype_equal(tenrec::dtype_of<std::complex<float>>(), TENREC_COMPLEX64));
        IS(tenrec_dtype_equal(tenrec::dtype_of<const std::uint8_t>(), TENREC_UINT8));
    });
}

void test_handles(tenrec::worker &owner, tenrec::worker &w)
{
    test("cpp_requests_of_a_mailbox_are_answered_once", [&] {
        auto first = w.async<int>("worker0", "box", 5, "x");
        {
            auto r = owner.receive("box", tenrec::milliseconds(20000));
            const auto [n, text] = r.args<int, std::string>();
            IS(text == "x" && std::string(r.from().name) == "worker1");
            r.reply(n + 1);
        }
        IS(first.result() == 6);
        auto second = w.async<int>("worker0", "box");
        owner.receive("box", tenrec::milliseconds(20000));
        throws(TENREC_ECANCELED, "received, and not answered", [&] { second.result(); });
        throws(TENREC_ETIMEDOUT, "'box' received no call within 1 ms",
               [&] { owner.receive("box", tenrec::milliseconds(1)); });
    });
    test("cpp_references_travel", [&] {
        const auto r = w.remote("worker0", "add", 1, 2);

        IS(w.call<int>("worker0", "add", w.call<int>("worker0", "add", 0, 0), 3) == 3);
        const auto here = tenrec::make<tenrec::value>(tenrec_rref_to_here, r.get(), nullptr);
        IS(tenrec::read<int>(*here) == 3);
    });
    test("cpp_handles_are_made_by_functions_of_c", [&] {
        auto store = tenrec::make<tenrec::store>(tenrec_store_open, "memory://cpp", 1000);
        IS(store != nullptr);
        throws(TENREC_EPLUGIN, "nothing",
               [] { tenrec::make<tenrec::store>(tenrec_store_open, "nothing://", 1); });
    });
}

} // namespace

int main()
{
    try {
        const std::string store = "memory://cpp-test-" + std::to_string(__cplusplus);
        const auto c0 = config_of(0, store.c_str()), c1 = config_of(1, store.c_str());
        tenrec::worker zero(c0.get()), one(c1.get());

        register_functions(zero);
        std::thread other([&] { zero.init(); });
        one.init();
        other.join();
        test("cpp_workers_know_their_rank_and_the_size",
             [&] { IS(one.rank() == 1 && zero.size() == 2); });
        test_calls(one);
        test_tensors(one);
        test_handles(zero, one);
        std::thread last([&] { zero.shutdown(); });
        one.shutdown();
        last.join();
    } catch (const std::exception &e) {
        std::printf("# %s\n", e.what());
        failures++;
    }
    std::printf("1..%d\n", cases);
    return failures != 0;
}
