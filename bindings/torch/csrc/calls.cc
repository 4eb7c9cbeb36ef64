// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include "python_thread.h"
#include "reference.h"
#include "text.h"

#include <algorithm>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/distributed/rpc/utils.h>

namespace tenrec_torch
{

// On the pool: a call of this worker has ended.
struct Calls::Answer : Pool::Task {
    Answer(Calls &calls, Call call, tenrec_msg *msg, std::string error)
        : calls(calls), call(std::move(call)), msg(msg), error(std::move(error))
    {
    }

    void run() override
    {
        c10::intrusive_ptr<Message> response;
        std::vector<c10::Stream> streams;

        try {
            const Calls &all = calls;
            if (msg) {
                streams = all.devices_.freshStreams();
                response = read_message(msg, all.devices_, streams);
            }
        } catch (const std::exception &e) {
            error = text_of(e);
        }
        calls.end(call, response, error, streams);
    }

    Calls &calls;
    Call call;
    tenrec_msg *msg; // NULL: there is none, but an error
    std::string error;
};

int64_t Calls::begin(Call call)
{
    std::unique_lock<std::mutex> hold(lock_);

    counted_.wait(hold, [this] { return !counting_; });
    const int64_t id = next_id_++;
    pending_.emplace(id, std::move(call));
    open_++;
    return id;
}

void Calls::complete(Call &call, const c10::intrusive_ptr<Message> &response,
                     const std::vector<c10::Stream> &streams)
{
    const c10::MultiStreamGuard on_streams(streams); // of which the future records the state
    auto storages = response->getStorages();

    call.future->markCompleted(c10::IValue(response), std::move(storages));
}

// A future wakes its waiters before its callbacks run. A callback of torch fails the reference to a
// value of this worker, and removes the value's owner from torch's context, so that a value made
// later finds no owner. A thread that asks for the value after the callback gets the error from the
// reference; a thread that waits already gets it from the owner.
void Calls::fail(Call &call, const std::exception_ptr &why)
{
    c10::intrusive_ptr<rpc::OwnerRRef> owner;

    if (call.request)
        owner = reference_made_by(*call.request);
    try {
        const Gil gil(call.request != nullptr);

        call.future->setError(why);
    } catch (const std::exception &e) {
        LOG(ERROR) << "TENREC: a callback of a future failed: " << e.what();
    }
    if (owner)
        owner->setError(why);
}

void Calls::end(Call &call, const c10::intrusive_ptr<Message> &response, const std::string &error,
                const std::vector<c10::Stream> &streams)
{
    try {
        if (!response) {
            fail(call, std::make_exception_ptr(std::runtime_error(error)));
        } else if (response->type() == rpc::EXCEPTION) {
            const std::vector<char> &text = response->payload();
            fail(call, std::make_exception_ptr(std::runtime_error({ text.begin(), text.end() })));
        } else {
            complete(call, response, streams);
        }
    } catch (const std::exception &e) {
        LOG(ERROR) << "TENREC: a callback of a future failed: " << e.what();
    }
    call.request.reset();
    call.future.reset();
    std::lock_guard<std::mutex> hold(lock_);
    if (--open_ == 0)
        none_.notify_all();
}

void Calls::fail(Call call, std::string text)
{
    const Pool::Lane lane = call.lane;

    pool_.run(lane, std::make_unique<Answer>(*this, std::move(call), nullptr, std::move(text)));
}

bool Calls::takeIf(int64_t id, const rpc::worker_id_t *from, Call &ret)
{
    std::lock_guard<std::mutex> hold(lock_);
    auto at = pending_.find(id);

    if (at == pending_.end() || (from && at->second.to != *from))
        return false;
    ret = std::move(at->second);
    pending_.erase(at);
    return true;
}

bool Calls::take(int64_t id, Call &ret)
{
    return takeIf(id, nullptr, ret);
}

bool Calls::takeFrom(int64_t id, tenrec_peer from, Call &ret)
{
    const auto sender = static_cast<rpc::worker_id_t>(from);

    return takeIf(id, &sender, ret);
}

const char *Calls::refusalOf(const tenrec_msg &msg) const
{
    if (proves_ && !(msg.flags & TENREC_MSG_PROVED))
        return "the backend TENREC reads answers of workers that have proved to belong to the "
               "group only, and this worker has not proved it";
    return nullptr;
}

void Calls::answer(tenrec_peer from, tenrec_msg *msg)
{
    const char *why = refusalOf(*msg);
    Call call;

    if (!takeFrom(msg->id, from, call)) {
        msg->release(msg); // the call has ended, or went to another worker
    } else if (why) {
        msg->release(msg);
        fail(std::move(call), why);
    } else {
        const Pool::Lane lane = call.lane;

        pool_.run(lane, std::make_unique<Answer>(*this, std::move(call), msg, ""));
    }
}

template <class Which> std::vector<Call> Calls::takeThose(Which which)
{
    std::lock_guard<std::mutex> hold(lock_);
    std::vector<Call> taken;

    for (auto at = pending_.begin(); at != pending_.end();) {
        if (which(at->second)) {
            taken.push_back(std::move(at->second));
            at = pending_.erase(at);
        } else {
            ++at;
        }
    }
    return taken;
}

void Calls::failAll(const std::string &text)
{
    for (Call &call : takeThose([](const Call &) { return true; }))
        fail(std::move(call), text);
}

void Calls::failThoseTo(rpc::worker_id_t to, const std::string &text)
{
    for (Call &call : takeThose([to](const Call &call) { return call.to == to; }))
        fail(std::move(call), text);
}

uint64_t Calls::failLate(uint64_t now_ns)
{
    uint64_t next_ns = 0;
    std::vector<Call> late = takeThose([&](const Call &call) {
        if (call.deadline_ns && call.deadline_ns <= now_ns)
            return true;
        if (call.deadline_ns && (!next_ns || call.deadline_ns < next_ns))
            next_ns = call.deadline_ns;
        return false;
    });

    for (Call &call : late) {
        std::string text = lateText(call);
        fail(std::move(call), std::move(text));
    }
    return next_ns;
}

std::string Calls::lateText(const Call &call)
{
    return rpc::makeRPCError(c10::str("RPC ran for more than set timeout (", call.timeout.count(),
                                      " ms) and will now be marked with an error"),
                             rpc::TIMEOUT);
}

int64_t Calls::open() const
{
    std::lock_guard<std::mutex> hold(lock_);

    return open_;
}

int64_t Calls::openTo(rpc::worker_id_t to) const
{
    std::lock_guard<std::mutex> hold(lock_);

    return std::count_if(pending_.begin(), pending_.end(),
                         [to](const auto &pending) { return pending.second.to == to; });
}

bool Calls::waitUntilNone(Deadline until)
{
    std::unique_lock<std::mutex> hold(lock_);

    return none_.wait_until(hold, until, [this] { return open_ == 0; });
}

Calls::Count::Count(Calls &calls) : calls_(calls)
{
    std::lock_guard<std::mutex> hold(calls.lock_);

    calls.counting_ = true;
    open = calls.open_;
}

Calls::Count::~Count()
{
    std::lock_guard<std::mutex> hold(calls_.lock_);

    calls_.counting_ = false;
    calls_.counted_.notify_all();
}

} // namespace tenrec_torch
