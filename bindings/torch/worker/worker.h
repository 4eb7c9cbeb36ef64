/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - a worker of a Tenrec group, for Python. */
#ifndef TORCH_WORKER_WORKER_H
#define TORCH_WORKER_WORKER_H

#include "value.h"

#include <map>
#include <memory>
#include <optional>

namespace tenrec_torch
{

/* The result of a call, once it is complete. */
class Future
{
  public:
    explicit Future(struct tenrec_future *f) : f_(f) // takes
    {
    }
    ~Future();
    Future(const Future &) = delete;
    Future &operator=(const Future &) = delete;

    py::object wait(const py::object &limit);
    bool done() const
    {
        return tenrec_future_done(f_);
    }

  private:
    struct tenrec_future *f_;
};

/* All methods are called with the GIL; those that wait release it. */
class Worker
{
  public:
    /* config: a path, a text of more than one line, or None. */
    Worker(const std::optional<std::string> &config, const py::dict &overrides);
    ~Worker();
    Worker(const Worker &) = delete;
    Worker &operator=(const Worker &) = delete;

    void register_function(const std::string &name, py::function fn);
    void init_rpc();
    void shutdown(bool graceful, const py::object &limit);
    std::unique_ptr<Future> call_async(const std::string &to, const std::string &function,
                                       const py::args &args, const py::object &timeout);
    py::object call(const std::string &to, const std::string &function, const py::args &args,
                    const py::object &timeout);
    std::string name() const;
    std::vector<std::string> names() const;
    /* The members of a dynamic group, id to name, once its view has this version or a later one. */
    std::pair<uint64_t, std::map<int, std::string>> view(uint64_t version);

  private:
    struct tenrec_worker *w_ = nullptr;
    std::vector<std::unique_ptr<py::function>> functions_; // calls have their addresses
};

} // namespace tenrec_torch

#endif
