// SPDX-License-Identifier: Apache-2.0
#include "members.h"

namespace tenrec_torch
{

namespace
{

// Not by TORCH_CHECK, whose text has the frames of C++.
[[noreturn]] void members_unknown(const std::string &who, size_t n)
{
    throw std::runtime_error("could not find destination " + who + " among " + std::to_string(n) +
                             " workers");
}

} // namespace

tenrec_member Members::forChain(const Member &member)
{
    tenrec_member ret{};

    ret.size = sizeof ret;
    ret.id = member.id;
    ret.incarnation = member.incarnation;
    ret.token = member.token;
    ret.name = member.name.c_str();
    ret.address = member.address.c_str();
    return ret;
}

tenrec_member Members::add(Member member)
{
    std::unique_lock<std::shared_mutex> hold(lock_);
    const rpc::WorkerInfo info(member.name, member.id);

    known_.push_back({ std::move(member), info });
    by_id_[info.id_] = last_by_id_[info.id_] = by_name_[info.name_] = &known_.back();
    return forChain(known_.back().member);
}

void Members::remove(rpc::worker_id_t id)
{
    std::unique_lock<std::shared_mutex> hold(lock_);
    const auto found = by_id_.find(id);

    if (found == by_id_.end())
        return;
    const auto named = by_name_.find(found->second->info.name_);
    if (named != by_name_.end() && named->second == found->second)
        by_name_.erase(named); // else another member has the name by now
    by_id_.erase(found);
}

const rpc::WorkerInfo &Members::at(const std::string &name) const
{
    std::shared_lock<std::shared_mutex> hold(lock_);
    const auto found = by_name_.find(name);

    if (found == by_name_.end())
        members_unknown("'" + name + "'", by_id_.size());
    return found->second->info;
}

const rpc::WorkerInfo &Members::at(rpc::worker_id_t id) const
{
    std::shared_lock<std::shared_mutex> hold(lock_);
    const auto found = last_by_id_.find(id);

    if (found == last_by_id_.end())
        members_unknown(std::to_string(id), by_id_.size());
    return found->second->info;
}

bool Members::has(const rpc::WorkerInfo &member) const
{
    std::shared_lock<std::shared_mutex> hold(lock_);
    const auto found = by_id_.find(member.id_);

    return found != by_id_.end() && found->second->info.name_ == member.name_;
}

std::vector<rpc::WorkerInfo> Members::infos() const
{
    std::shared_lock<std::shared_mutex> hold(lock_);
    std::vector<rpc::WorkerInfo> ret;

    for (auto &[id, known] : by_id_)
        ret.push_back(known->info);
    return ret;
}

std::vector<tenrec_member> Members::all() const
{
    std::shared_lock<std::shared_mutex> hold(lock_);
    std::vector<tenrec_member> ret;

    for (auto &[id, known] : by_id_)
        ret.push_back(forChain(known->member));
    return ret;
}

} // namespace tenrec_torch
