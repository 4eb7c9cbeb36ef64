// SPDX-License-Identifier: Apache-2.0
#include "members.h"

namespace tenrec_torch
{

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
    by_id_[info.id_] = by_name_[info.name_] = &known_.back();
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

    TORCH_CHECK(found != by_name_.end(), "could not find destination '", name, "' among ",
                by_id_.size(), " workers");
    return found->second->info;
}

const rpc::WorkerInfo &Members::at(rpc::worker_id_t id) const
{
    std::shared_lock<std::shared_mutex> hold(lock_);
    const auto found = by_id_.find(id);

    TORCH_CHECK(found != by_id_.end(), "could not find destination ", id, " among ", by_id_.size(),
                " workers");
    return found->second->info;
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
