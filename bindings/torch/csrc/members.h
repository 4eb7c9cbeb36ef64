/* SPDX-License-Identifier: Apache-2.0 */
// members.h - the members of a group, by id and by name.
#pragma once

#include <deque>
#include <map>
#include <shared_mutex>
#include <string>
#include <tenrec/chain.h>
#include <torch/csrc/distributed/rpc/rpc_agent.h>
#include <unordered_map>

namespace tenrec_torch
{

namespace rpc = torch::distributed::rpc;

struct Member {
    rpc::worker_id_t id;
    std::string name, address;
    uint64_t incarnation, token; // token 0: the member's record has none
};

// Any thread. torch and the chain keep pointers to infos and names, so members that left stay in
// memory.
class Members
{
  public:
    // A member of the same id or name has left. Returns the member for the chain.
    tenrec_member add(Member member);
    // Does nothing if there is no such member.
    void remove(rpc::worker_id_t id);

    // Throw for unknown ones.
    const rpc::WorkerInfo &at(const std::string &name) const;
    // Also of a member that has left: torch asks for the owner of each reference that it drops.
    const rpc::WorkerInfo &at(rpc::worker_id_t id) const;
    // Returns false if the member has left.
    bool has(const rpc::WorkerInfo &member) const;
    std::vector<rpc::WorkerInfo> infos() const;
    // For the start of a chain: all members.
    std::vector<tenrec_member> all() const;

  private:
    struct Known {
        Member member;
        rpc::WorkerInfo info;
    };

    static tenrec_member forChain(const Member &member);

    mutable std::shared_mutex lock_; // guards all that follows
    std::deque<Known> known_;
    std::map<rpc::worker_id_t, const Known *> by_id_, last_by_id_;
    std::unordered_map<std::string, const Known *> by_name_;
};

} // namespace tenrec_torch
