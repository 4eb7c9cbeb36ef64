/* SPDX-License-Identifier: Apache-2.0 */
// group.h - the end of a group, over torch's store.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/rpc/rpc_agent.h>

namespace tenrec_torch
{

namespace rpc = torch::distributed::rpc;

// The workers of a group meet repeatedly; each calls the same functions in the same
// order. One thread at a time.
class Group
{
  public:
    using Deadline = std::chrono::steady_clock::time_point;
    // Returns true if the worker has ended.
    using Refuses = std::function<bool(rpc::worker_id_t id)>;

    static constexpr const char *STORE_GONE =
        "the store of the group is gone, which rank 0 serves unless a launcher does";

    Group(c10::intrusive_ptr<c10d::Store> store, std::vector<std::string> names, int me);

    // Adds up one number of each worker; waits for all of them. Throws
    // std::runtime_error at the deadline, with the names of the missing workers, when the store
    // is gone, and when `refuses`, if any, is true of a missing worker.
    int64_t sum(int64_t mine, Deadline until, const Refuses &refuses = {});

    // Returns when no worker needs the store any more: rank 0, which may serve it,
    // waits for the others until the deadline.
    void leave(Deadline until);

  private:
    bool arrived(const std::string &round, size_t id);
    // Why the round cannot end, or "".
    std::string obstacle(const std::string &round, Deadline until, const Refuses &refuses);
    // Returns when all have arrived, with "", or with the obstacle.
    std::string await(const std::string &round, Deadline until, const Refuses &refuses);

    const c10::intrusive_ptr<c10d::Store> store_;
    const std::vector<std::string> names_; // by id
    const int me_;
    int64_t rounds_ = 0;
};

} // namespace tenrec_torch
