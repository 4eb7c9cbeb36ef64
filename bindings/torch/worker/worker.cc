// SPDX-License-Identifier: Apache-2.0
#include "worker.h"

#include <cmath>
#include <tenrec/group.h>

namespace tenrec_torch
{

/* Converts seconds to milliseconds; None gives `otherwise`. The parameter is an object since
 * pybind11 accepts no int for a double after *args. */
static int64_t to_ms(const py::object &seconds, int64_t otherwise)
{
    if (seconds.is_none())
        return otherwise;
    const double s = py::float_(seconds);
    if (!(s > 0))
        throw py::value_error("expected a timeout of more than 0 seconds, or None for no limit");
    return s > 1e12 ? TENREC_TIMEOUT_NONE : std::max<int64_t>(1, std::llround(s * 1000));
}

/* Runs `fn` without the GIL, and raises its error. */
template <class Fn> static void without_gil(Fn fn)
{
    tenrec_error err;
    tenrec_status st;

    {
        py::gil_scoped_release released;
        st = fn(&err);
    }
    if (st != TENREC_OK)
        raise(err);
}

Future::~Future()
{
    py::gil_scoped_release released; // the last one frees tensors of the result
    tenrec_future_drop(f_);
}

py::object Future::wait(const py::object &limit)
{
    int64_t ms = to_ms(limit, TENREC_TIMEOUT_NONE);

    without_gil([&](tenrec_error *err) { return tenrec_future_wait(f_, ms, err); });
    return to_python(*tenrec_future_value(f_));
}

Worker::Worker(const std::optional<std::string> &config, const py::dict &overrides)
{
    struct tenrec_config *made;
    tenrec_error err;
    tenrec_status st;

    if (config && config->find('\n') != std::string::npos)
        st = tenrec_config_parse(config->c_str(), "config", &made, &err);
    else
        st = tenrec_config_load(config ? config->c_str() : nullptr, &made, &err);
    if (st != TENREC_OK)
        raise(err);
    for (auto item : overrides) {
        st = tenrec_config_set(made, py::str(item.first).cast<std::string>().c_str(),
                               py::str(item.second).cast<std::string>().c_str(), &err);
        if (st != TENREC_OK)
            break;
    }
    if (st == TENREC_OK)
        st = tenrec_worker_new(made, &w_, &err);
    tenrec_config_drop(made);
    if (st != TENREC_OK)
        raise(err);
}

Worker::~Worker()
{
    py::gil_scoped_release released; // functions that still run need it to end
    tenrec_worker_drop(w_);
}

/* Answers a call with the result of a Python function. On a thread of the pool. */
static tenrec_status answer(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    py::gil_scoped_acquire gil;

    try {
        size_t n;
        const struct tenrec_value *args = tenrec_call_args(call, &n);
        py::tuple given(n);

        for (size_t i = 0; i < n; i++)
            given[i] = to_python(args[i]);
        Values result(py::make_tuple((*static_cast<py::function *>(arg))(*given)));
        py::gil_scoped_release released; // it sends
        return tenrec_call_return(call, result.data(), err);
    } catch (const std::exception &e) { // a Python exception too: "ValueError: text, at: ..."
        return tenrec_fail(err, TENREC_EREMOTE, "%s", e.what());
    }
}

void Worker::register_function(const std::string &name, py::function fn)
{
    auto kept = std::make_unique<py::function>(std::move(fn));
    tenrec_error err;

    if (tenrec_worker_register_function(w_, name.c_str(), answer, kept.get(), TENREC_POOL, &err) !=
        TENREC_OK)
        raise(err);
    functions_.push_back(std::move(kept));
}

void Worker::init_rpc()
{
    without_gil([&](tenrec_error *err) { return tenrec_init_rpc(w_, err); });
}

void Worker::shutdown(bool graceful, const py::object &limit)
{
    enum tenrec_shutdown_mode mode = graceful ? TENREC_GRACEFUL : TENREC_IMMEDIATE;
    int64_t ms = to_ms(limit, TENREC_TIMEOUT_DEFAULT);

    if (!tenrec_worker_running(w_))
        return;
    without_gil([&](tenrec_error *err) { return tenrec_shutdown(w_, mode, ms, err); });
}

std::unique_ptr<Future> Worker::call_async(const std::string &to, const std::string &function,
                                           const py::args &args, const py::object &timeout)
{
    Values values(args);
    struct tenrec_call_options options = {};
    struct tenrec_future *f;

    options.size = sizeof options;
    options.timeout_ms = to_ms(timeout, TENREC_TIMEOUT_DEFAULT);
    without_gil([&](tenrec_error *err) {
        return tenrec_rpc_async(w_, to.c_str(), function.c_str(), values.data(), values.size(),
                                &options, &f, err);
    });
    return std::make_unique<Future>(f);
}

py::object Worker::call(const std::string &to, const std::string &function, const py::args &args,
                        const py::object &timeout)
{
    Values values(args);
    struct tenrec_call_options options = {};
    struct tenrec_value *ret;

    options.size = sizeof options;
    options.timeout_ms = to_ms(timeout, TENREC_TIMEOUT_DEFAULT);
    without_gil([&](tenrec_error *err) {
        return tenrec_rpc_sync(w_, to.c_str(), function.c_str(), values.data(), values.size(),
                               &options, &ret, err);
    });
    std::unique_ptr<struct tenrec_value, decltype(&tenrec_value_drop)> held(ret, tenrec_value_drop);
    return to_python(*ret);
}

std::string Worker::name() const
{
    struct tenrec_worker_info info;
    tenrec_error err;

    if (tenrec_get_worker_info(w_, nullptr, &info, &err) != TENREC_OK)
        raise(err);
    return info.name;
}

std::vector<std::string> Worker::names() const
{
    std::vector<struct tenrec_worker_info> infos(16);
    std::vector<std::string> found;
    tenrec_error err;
    size_t n = infos.size();

    do {
        infos.resize(n);
        if (tenrec_worker_get_infos(w_, infos.data(), infos.size(), &n, &err) != TENREC_OK)
            raise(err);
    } while (n > infos.size());
    for (size_t i = 0; i < n; i++)
        found.emplace_back(infos[i].name);
    return found;
}

std::pair<uint64_t, std::map<int, std::string>> Worker::view(uint64_t version)
{
    struct tenrec_group_view *view = nullptr;
    std::pair<uint64_t, std::map<int, std::string>> found;

    without_gil([&](tenrec_error *err) {
        tenrec_status st = tenrec_group_wait_version(w_, version, TENREC_TIMEOUT_NONE, err);
        return st == TENREC_OK ? tenrec_group_view_get(w_, &view, err) : st;
    });
    found.first = view->version;
    for (uint32_t i = 0; i < view->n; i++)
        found.second[view->member[i].id] = view->member[i].name;
    tenrec_group_view_drop(view);
    return found;
}

} // namespace tenrec_torch
