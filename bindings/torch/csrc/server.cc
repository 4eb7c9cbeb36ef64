// SPDX-License-Identifier: Apache-2.0
#include "server.h"

#include "text.h"

namespace tenrec_torch
{

namespace
{

c10::intrusive_ptr<rpc::JitFuture> failed(const std::exception &why)
{
    auto future = c10::make_intrusive<rpc::JitFuture>(at::AnyClassType::get());

    future->setError(std::make_exception_ptr(std::runtime_error(text_of(why))));
    return future;
}

// An exception that torch has caught itself carries the frames, too.
c10::intrusive_ptr<Message> without_frames(c10::intrusive_ptr<Message> response)
{
    if (response->type() != rpc::EXCEPTION)
        return response;
    const std::vector<char> &text = response->payload();
    return rpc::createExceptionResponse(text_without_frames({ text.begin(), text.end() }),
                                        response->id());
}

void on_sent(void *arg, const tenrec_error *err) noexcept;

// way.agent outlives the call of on_sent, which may run before this returns.
void send_response(c10::intrusive_ptr<Message> response, int64_t id, const Way &way)
{
    Outgoing *out = Outgoing::make(std::move(response), id, way);

    out->msg.route = way.route;
    out->msg.flags = TENREC_MSG_CONTROL; // a full queue must not lose it
    tenrec_chain_send(way.agent, way.to, &out->msg, { on_sent, out });
}

// Sends the caller the reason why the backend could not send the answer. An answer lost to
// an injected fault or a broken connection stays lost.
void on_sent(void *arg, const tenrec_error *err) noexcept
{
    auto *out = static_cast<Outgoing *>(arg);

    if (err && out->msg.type != rpc::EXCEPTION &&
        (err->code == TENREC_EUNSUPPORTED || err->code == TENREC_EINVAL ||
         err->code == TENREC_ETOOBIG || err->code == TENREC_ENOMEM)) {
        try {
            const std::string why = c10::str("The answer cannot be sent: ", err->text);
            send_response(rpc::createExceptionResponse(why, out->msg.id), out->msg.id, out->way);
        } catch (const std::exception &e) {
            LOG(ERROR) << "TENREC: cannot answer a call: " << e.what();
        }
    }
    out->drop();
}

} // namespace

// On the pool: a request of another worker.
struct Server::Request : Pool::Task {
    Request(Server &server, tenrec_peer from, tenrec_msg *msg)
        : server(server), caller{ from, msg->route, msg->id }, msg(msg),
          runs_python(msg->type == rpc::PYTHON_CALL || msg->type == rpc::PYTHON_REMOTE_CALL)
    {
    }

    // A Python function acquires the GIL several times before it runs, so two functions that
    // start together may run in either order.
    int order() const override
    {
        return runs_python ? caller.from : -1;
    }

    void run() override
    {
        c10::intrusive_ptr<Message> request;
        std::vector<c10::Stream> streams;

        try {
            streams = server.devices_.freshStreams();
            request = read_message(msg, server.devices_, streams);
        } catch (const std::exception &e) {
            server.reply(caller, *failed(e));
            return;
        }
        server.run(caller, request, std::move(streams));
    }

    Server &server;
    Caller caller;
    tenrec_msg *msg;
    const bool runs_python;
};

void Server::open(tenrec_chain *backend)
{
    std::unique_lock<std::shared_mutex> hold(lock_);

    backend_ = backend;
}

void Server::close()
{
    open(nullptr);
}

const char *Server::refusalOf(tenrec_peer from, const tenrec_msg &msg) const
{
    if (from < 0)
        return "the backend TENREC accepts calls of members of its group only, and this caller has "
               "not shown to be one: start it with init_rpc on the backend TENREC and the same "
               "store";
    if (proves_ && !(msg.flags & TENREC_MSG_PROVED))
        return "the backend TENREC accepts calls of workers that have proved to belong to the "
               "group only, and this caller has not proved it";
    return nullptr;
}

// On the reading thread, so that a stranger occupies no thread of the pool.
void Server::refuse(const Caller &caller, const char *why)
{
    refused();
    try {
        send(caller, rpc::createExceptionResponse(why, caller.id));
    } catch (const std::exception &e) {
        LOG(ERROR) << "TENREC: cannot refuse a stranger's call: " << e.what();
    }
}

void Server::serve(tenrec_peer from, tenrec_msg *msg)
{
    if (const char *why = refusalOf(from, *msg)) {
        const Caller caller{ from, msg->route, msg->id };

        msg->release(msg);
        refuse(caller, why);
        return;
    }
    calls_++;
    pool_.run(Pool::REQUESTS, std::make_unique<Request>(*this, from, msg));
}

void Server::run(const Caller &caller, const c10::intrusive_ptr<Message> &request,
                 std::vector<c10::Stream> streams)
{
    c10::intrusive_ptr<rpc::JitFuture> future;

    try {
        future = functions_(*request, std::move(streams)); // its current streams
    } catch (const std::exception &e) {
        future = failed(e);
    }
    async_calls_++;
    future->addCallback([self = shared_from_this(), caller](rpc::JitFuture &done) {
        self->async_calls_--;
        self->reply(caller, done);
    });
}

void Server::reply(const Caller &caller, rpc::JitFuture &future)
{
    calls_--;
    try {
        if (future.hasError())
            send(caller, rpc::createExceptionResponse(
                             text_without_frames(future.tryRetrieveErrorMessage()), caller.id));
        else
            send(caller, without_frames(future.value().toCustomClass<Message>()));
    } catch (const std::exception &e) {
        send(caller, rpc::createExceptionResponse(text_of(e), caller.id));
    }
}

void Server::send(const Caller &caller, c10::intrusive_ptr<Message> response)
{
    std::shared_lock<std::shared_mutex> hold(lock_);

    // Not moved: the last holder of a tensor may wait for the GIL, and must not hold a lock then.
    if (backend_)
        send_response(
            response, caller.id,
            { backend_, caller.from, caller.route, &pool_, devices_.answerMap(caller.from) });
}

} // namespace tenrec_torch
