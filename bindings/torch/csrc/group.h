/* SPDX-License-Identifier: Apache-2.0 */
// group.h - the end of a group, over torch's store.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tenrec_torch
{

// The workers of a group meet repeatedly; each calls the same functions in the same
// order. One thread at a time.
class Group
{
  public:
    using Deadline = std::chrono::steady_clock::time_point;

    static constexpr const char *STORE_GONE =
        "the store of the group is gone, which rank 0 serves unless a launcher does";

    Group(c10::intrusive_ptr<c10d::Store> store, std::vector<std::string> names, int me);

    // Adds up one number of each worker; waits for all of them. Throws
    // std::runtime_error at the deadline, with the names of the missing workers, and when
    // the store is gone.
    int64_t sum(int64_t mine, Deadline until);

    // Returns when no worker needs the store any more: rank 0, which may serve it,
    // waits for the others until the deadline.
    void leave(Deadline until);

  private:
    int64_t meet(const std::string &round, int64_t mine, Deadline until);
    std::string missing(const std::string &round);

    const c10::intrusive_ptr<c10d::Store> store_;
    const std::vector<std::string> names_; // by id
    const int me_;
    int64_t rounds_ = 0;
};

} // namespace tenrec_torch
