// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include "python_thread.h"
#include "reference.h"
#include "text.h"

#include <c10/core/StreamGuard.h>
#include <torch/csrc/distributed/rpc/utils.h>
#include <utility>

namespace tenrec_torch
{

// A call that the chain ends; then on the pool.
struct Calls::Answer : Pool::Task {
    Answer(Calls &calls, Call call) : calls(calls), call(std::move(call))
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
    tenrec_msg *msg = nullptr; // there is none, but an error
    std::string error;
};

namespace
{

std::string error_of(const Call &call, const tenrec_error &why)
{
    if (why.code == TENREC_ETIMEDOUT)
        return rpc::makeRPCError(c10::str("RPC ran for more than set timeout (",
                                          call.timeout.count(),
                                          " ms) and will now be marked with an error"),
                                 rpc::TIMEOUT);
    return why.code == TENREC_EINJECTED ? rpc::makeRPCError(why.text, rpc::INTENTIONAL_FAILURE)
                                        : why.text;
}

} // namespace

void Calls::send(tenrec_chain *chain, Call call, tenrec_msg *request)
{
    auto answer = std::make_unique<Answer>(*this, std::move(call));
    tenrec_error why;

    {
        std::unique_lock<std::mutex> hold(lock_);

        counted_.wait(hold, [this] { return !counting_; });
        open_++;
        open_to_[answer->call.to]++;
    }
    if (tenrec_chain_call(chain, answer->call.to, request, { onAnswer, answer.get() }, &why) ==
        TENREC_OK) {
        answer.release(); // onAnswer has it
    } else {
        answer->error = error_of(answer->call, why);
        answer->run();
    }
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
    if (--open_to_[call.to] == 0)
        open_to_.erase(call.to);
    if (--open_ == 0)
        none_.notify_all();
}

const char *Calls::refusalOf(const tenrec_msg &msg) const
{
    if (proves_ && !(msg.flags & TENREC_MSG_PROVED))
        return "the backend TENREC reads answers of workers that have proved to belong to the "
               "group only, and this worker has not proved it";
    return nullptr;
}

void Calls::onAnswer(void *arg, tenrec_msg *msg, const tenrec_error *why) noexcept
{
    std::unique_ptr<Answer> answer(static_cast<Answer *>(arg));
    Calls &all = answer->calls;
    const Pool::Lane lane = answer->call.lane;
    const char *refusal = msg ? all.refusalOf(*msg) : nullptr;

    if (!msg) {
        answer->error = error_of(answer->call, *why);
    } else if (refusal) {
        msg->release(msg);
        answer->error = refusal;
    } else {
        answer->msg = msg;
    }
    all.pool_.run(lane, std::move(answer));
}

int64_t Calls::open() const
{
    std::lock_guard<std::mutex> hold(lock_);

    return open_;
}

int64_t Calls::openTo(rpc::worker_id_t to) const
{
    std::lock_guard<std::mutex> hold(lock_);
    const auto at = open_to_.find(to);

    return at == open_to_.end() ? 0 : at->second;
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
