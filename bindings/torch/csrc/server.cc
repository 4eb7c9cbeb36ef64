#include "server.h"

namespace tenrec_torch
{

namespace
{

c10::intrusive_ptr<rpc::JitFuture> failed(std::exception_ptr why)
{
    auto future = c10::make_intrusive<rpc::JitFuture>(at::AnyClassType::get());

    future->setError(std::move(why));
    return future;
}

void on_sent(void *out, const tenrec_error *) noexcept
{
    static_cast<Outgoing *>(out)->drop(); // who asked has gone, or sees its deadline
}

} // namespace

// On the pool: one of theirs.
struct Server::Request : Pool::Task {
    Request(Server &server, tenrec_peer from, tenrec_msg *msg)
        : server(server), caller{ from, msg->route, msg->id }, msg(msg)
    {
    }

    void run() override
    {
        c10::intrusive_ptr<Message> request;

        try {
            request = read_message(msg);
        } catch (const std::exception &) {
            server.reply(caller, *failed(std::current_exception()));
            return;
        }
        server.run(caller, request);
    }

    Server &server;
    Caller caller;
    tenrec_msg *msg;
};

void Server::open(tenrec_backend_agent *backend)
{
    std::unique_lock<std::shared_mutex> hold(lock_);

    backend_ = backend;
}

void Server::close()
{
    open(nullptr);
}

void Server::serve(tenrec_peer from, tenrec_msg *msg)
{
    calls_++;
    pool_.run(Pool::REQUESTS, std::make_unique<Request>(*this, from, msg));
}

void Server::run(const Caller &caller, const c10::intrusive_ptr<Message> &request)
{
    c10::intrusive_ptr<rpc::JitFuture> future;

    try {
        future = functions_(*request, {});
    } catch (const std::exception &) {
        future = failed(std::current_exception());
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
            send(caller, rpc::createExceptionResponse(future.tryRetrieveErrorMessage(), caller.id));
        else
            send(caller, future.value().toCustomClass<Message>());
    } catch (const std::exception &e) {
        send(caller, rpc::createExceptionResponse(e, caller.id));
    }
}

void Server::send(const Caller &caller, c10::intrusive_ptr<Message> response)
{
    std::shared_lock<std::shared_mutex> hold(lock_);
    // Not moved: the last holder of a tensor may wait for the GIL, and shall have no lock then.
    Outgoing *out = Outgoing::make(response, caller.id, { backend_, caller.from, caller.route });

    out->msg.route = caller.route;
    out->msg.flags = TENREC_MSG_CONTROL; // a full queue must not lose it
    if (backend_) {
        tenrec_backend_send(backend_, caller.from, &out->msg, { on_sent, out });
        return;
    }
    out->drop(); // both shares
    out->drop();
}

} // namespace tenrec_torch
