// SPDX-License-Identifier: Apache-2.0
#include "group.h"

#include "compat.h"
#include "text.h"

#include <thread>

namespace tenrec_torch
{

namespace
{

using std::chrono::milliseconds;

// Between two requests to the store by a worker that waits for long, and between two probes.
constexpr milliseconds LONGEST_PAUSE(100);

milliseconds left(Group::Deadline until)
{
    auto ms = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());

    return std::max(ms, milliseconds(1)); // 0 would be for ever
}

} // namespace

Group::Group(c10::intrusive_ptr<c10d::Store> store, std::vector<std::string> names, int me)
    : store_(std::move(store)), names_(std::move(names)), me_(me)
{
}

bool Group::arrived(const std::string &round, size_t id)
{
    return store_->check({ round + "/" + std::to_string(id) });
}

std::string Group::obstacle(const std::string &round, Deadline until, const Refuses &refuses)
{
    std::string names;

    for (size_t id = 0; id < names_.size(); id++) {
        if (arrived(round, id))
            continue;
        // A worker that has arrived meanwhile may have left.
        if (refuses && refuses((rpc::worker_id_t)id) && !arrived(round, id))
            return c10::str("worker '", names_[id], "' was lost while '", names_[(size_t)me_],
                            "' waited for it in rpc.shutdown(), since no process listens at its "
                            "address");
        names += (names.empty() ? "'" : ", '") + names_[id] + "'";
    }
    if (Deadline::clock::now() < until)
        return "";
    return "the group does not meet: waiting for " + (names.empty() ? "no worker any more" : names);
}

// Polls: torch's wait does not notice that a worker is lost.
std::string Group::await(const std::string &round, Deadline until, const Refuses &refuses)
{
    std::string why;

    for (milliseconds pause(1); why.empty() && !store_->check({ round + "/all" });
         pause = std::min(2 * pause, LONGEST_PAUSE)) {
        std::this_thread::sleep_for(std::min(pause, left(until)));
        if (pause == LONGEST_PAUSE || Deadline::clock::now() >= until)
            why = obstacle(round, until, refuses);
    }
    return why;
}

int64_t Group::sum(int64_t mine, Deadline until, const Refuses &refuses)
{
    const std::string round = "sync/" + std::to_string(++rounds_);
    std::string why;

    try {
        compat_mark(*store_, round + "/" + std::to_string(me_)); // read by arrived()
        store_->add(round + "/sum", mine);
        if (store_->add(round + "/count", 1) == (int64_t)names_.size())
            compat_mark(*store_, round + "/all");
        why = await(round, until, refuses);
        if (why.empty())
            return store_->add(round + "/sum", 0);
    } catch (const std::exception &e) {
        throw std::runtime_error(c10::str(STORE_GONE, ": ", text_of(e)));
    }
    throw std::runtime_error(why);
}

void Group::leave(Deadline until)
{
    try {
        if (store_->add("left", 1) == (int64_t)names_.size())
            compat_mark(*store_, "all_left");
        if (me_ == 0)
            store_->wait({ "all_left" }, left(until));
    } catch (const std::exception &) {
        // Either the server of the store has left, so no worker needs the store, or a
        // worker has not left by the deadline.
    }
}

} // namespace tenrec_torch
