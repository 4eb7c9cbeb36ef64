/* SPDX-License-Identifier: Apache-2.0 */
// group.h - the end of a group, over torch's store.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/rpc/rpc_agent.h>
#include <vector>

namespace tenrec_torch
{

namespace rpc = torch::distributed::rpc;

// The workers of a group meet repeatedly; each calls the same functions in the same
// order. One thread at a time.
class Group
{
  public:
    using Deadline = std::chrono::steady_clock::time_point;
    // Returns why a worker cannot be reached, or "".
    using Probe = std::function<std::string(rpc::worker_id_t id)>;

    static constexpr const char *STORE_GONE =
        "the store of the group is gone, which rank 0 serves unless a launcher does";

    Group(c10::intrusive_ptr<c10d::Store> store, std::vector<std::string> names, int me);

    // Adds up one number of each worker; waits for all of them. Throws
    // std::runtime_error at the deadline, with the names of the missing workers, when the
    // store is gone, and, if there is a `probe`, when a missing worker is dead.
    int64_t sum(int64_t mine, Deadline until, const Probe &probe = {});

    // Returns when no worker needs the store any more: rank 0, which may serve it,
    // waits for the others until the deadline.
    void leave(Deadline until);

  private:
    int64_t meet(const std::string &round, int64_t mine, Deadline until, const Probe &probe);
    void await(const std::string &round, Deadline until, const Probe &probe);
    std::vector<rpc::worker_id_t> missing(const std::string &round);
    std::string names(const std::vector<rpc::worker_id_t> &ids) const;
    void check(const std::string &round, const Probe &probe);

    const c10::intrusive_ptr<c10d::Store> store_;
    const std::vector<std::string> names_; // by id
    const int me_;
    int64_t rounds_ = 0;
};

} // namespace tenrec_torch
