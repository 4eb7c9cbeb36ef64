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

// A worker that waits for others probes them that often.
constexpr milliseconds PROBE_EVERY(300);
// Between two requests to the store.
constexpr milliseconds LONGEST_PAUSE(20);

// Workers are missing; the store is well.
struct Absent : std::runtime_error {
    using std::runtime_error::runtime_error;
};

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

std::vector<rpc::worker_id_t> Group::missing(const std::string &round)
{
    std::vector<rpc::worker_id_t> ids;

    for (size_t id = 0; id < names_.size(); id++)
        if (!store_->check({ round + "/" + std::to_string(id) }))
            ids.push_back((rpc::worker_id_t)id);
    return ids;
}

std::string Group::names(const std::vector<rpc::worker_id_t> &ids) const
{
    std::string text;

    for (const auto id : ids)
        text += (text.empty() ? "'" : ", '") + names_[(size_t)id] + "'";
    return text.empty() ? "no worker any more" : text;
}

// Throws if a missing worker is dead. One that arrived before its probe may have left by now.
void Group::check(const std::string &round, const Probe &probe)
{
    for (const auto id : missing(round)) {
        const std::string why = probe(id);
        if (!why.empty() && !store_->check({ round + "/" + std::to_string(id) }))
            throw Absent(c10::str("worker '", names_[(size_t)id], "' was lost while '",
                                  names_[(size_t)me_], "' waited for it in rpc.shutdown(), since ",
                                  why));
    }
}

// Polls: after a wait that timed out the client of torch 1's TCPStore has that limit
// for all that follows, and may read the answer of the wait as that of the next request.
void Group::await(const std::string &round, Deadline until, const Probe &probe)
{
    milliseconds pause(1);
    Deadline next = Deadline::clock::now() + PROBE_EVERY;

    while (!store_->check({ round + "/all" })) {
        const auto now = Deadline::clock::now();
        if (now >= until)
            throw Absent("the group does not meet: waiting for " + names(missing(round)));
        if (probe && now >= next) {
            check(round, probe);
            next = Deadline::clock::now() + PROBE_EVERY;
        }
        std::this_thread::sleep_for(pause);
        pause = std::min(2 * pause, LONGEST_PAUSE);
    }
}

int64_t Group::meet(const std::string &round, int64_t mine, Deadline until, const Probe &probe)
{
    compat_mark(*store_, round + "/" + std::to_string(me_)); // read by missing()
    store_->add(round + "/sum", mine);
    if (store_->add(round + "/count", 1) == (int64_t)names_.size())
        compat_mark(*store_, round + "/all");
    await(round, until, probe);
    return store_->add(round + "/sum", 0);
}

int64_t Group::sum(int64_t mine, Deadline until, const Probe &probe)
{
    try {
        return meet("sync/" + std::to_string(++rounds_), mine, until, probe);
    } catch (const Absent &) {
        throw;
    } catch (const std::exception &e) {
        throw std::runtime_error(c10::str(STORE_GONE, ": ", text_of(e)));
    }
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
