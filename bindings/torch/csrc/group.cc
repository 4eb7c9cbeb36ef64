// SPDX-License-Identifier: Apache-2.0
#include "group.h"

#include "compat.h"
#include "text.h"

namespace tenrec_torch
{

namespace
{

using std::chrono::milliseconds;

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

std::string Group::missing(const std::string &round)
{
    std::string text;

    for (size_t id = 0; id < names_.size(); id++)
        if (!store_->check({ round + "/" + std::to_string(id) }))
            text += (text.empty() ? "'" : ", '") + names_[id] + "'";
    return text.empty() ? "no worker any more" : text;
}

int64_t Group::meet(const std::string &round, int64_t mine, Deadline until)
{
    compat_mark(*store_, round + "/" + std::to_string(me_)); // read by missing()
    store_->add(round + "/sum", mine);
    if (store_->add(round + "/count", 1) == (int64_t)names_.size())
        compat_mark(*store_, round + "/all");
    store_->wait({ round + "/all" }, left(until));
    return store_->add(round + "/sum", 0);
}

int64_t Group::sum(int64_t mine, Deadline until)
{
    const std::string round = "sync/" + std::to_string(++rounds_);
    std::string names;

    try {
        try {
            return meet(round, mine, until);
        } catch (const std::exception &) {
            if (std::chrono::steady_clock::now() < until)
                throw;
        }
        names = missing(round);
    } catch (const std::exception &e) {
        throw std::runtime_error(c10::str(STORE_GONE, ": ", text_of(e)));
    }
    throw std::runtime_error("the group does not meet: waiting for " + names);
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
