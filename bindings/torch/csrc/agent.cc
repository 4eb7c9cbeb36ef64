#include "agent.h"

#include <ATen/ThreadLocalState.h>
#include <time.h>
#include <torch/csrc/distributed/rpc/utils.h>
#include <utility>

namespace tenrec_torch
{

namespace
{

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// A function that runs is waited for so long by shutdown.
constexpr milliseconds PATIENCE(30000);
// Rank 0 keeps the store for the others so long.
constexpr milliseconds LEAVE(5000);

uint64_t now_ns()
{
    timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

std::string text_of(tenrec_status code, const std::string &text)
{
    return code == TENREC_EINJECTED ? rpc::makeRPCError(text, rpc::INTENTIONAL_FAILURE) : text;
}

std::string timeout_text(milliseconds timeout)
{
    return rpc::makeRPCError(c10::str("RPC ran for more than set timeout (", timeout.count(),
                                      " ms) and will now be marked with an error"),
                             rpc::TIMEOUT);
}

[[noreturn]] void raise(const tenrec_error &err)
{
    throw std::runtime_error(err.text);
}

// What libtorch keeps per thread is as when the thread began, and so again afterwards:
// a thread that has profiled once would record nothing any more.
class CleanThread
{
  public:
    CleanThread() : guard_(first())
    {
    }

  private:
    static const at::ThreadLocalState &first()
    {
        thread_local const at::ThreadLocalState state;
        return state;
    }

    const at::ThreadLocalStateGuard guard_;
};

} // namespace

// ---- tasks of the pool -------------------------------------------------------

struct TenrecAgent::Answer : Pool::Task {
    Answer(TenrecAgent &agent, Call call, tenrec_msg *msg, std::string error)
        : agent(agent), call(std::move(call)), msg(msg), error(std::move(error))
    {
    }

    void run() override
    {
        const CleanThread clean;
        c10::intrusive_ptr<Message> response;

        try {
            if (msg)
                response = read_message(msg);
        } catch (const std::exception &e) {
            error = e.what();
        }
        agent.finish(call, response, error);
    }

    TenrecAgent &agent;
    Call call;
    tenrec_msg *msg; // NULL: there is none, but an error
    std::string error;
};

struct TenrecAgent::Request : Pool::Task {
    Request(TenrecAgent &agent, tenrec_peer from, tenrec_msg *msg)
        : agent(agent), msg(msg), route(msg->route), from(from), id(msg->id)
    {
    }

    void run() override
    {
        const CleanThread clean;
        c10::intrusive_ptr<Message> request;

        try {
            request = read_message(msg);
        } catch (const std::exception &) {
            auto future = c10::make_intrusive<rpc::JitFuture>(at::AnyClassType::get());
            future->setError(std::current_exception());
            agent.reply(from, route, id, *future);
            return;
        }
        agent.serve(from, route, request);
    }

    TenrecAgent &agent;
    tenrec_msg *msg;
    tenrec_route route;
    tenrec_peer from;
    int64_t id;
};

// ---- made and gone -----------------------------------------------------------

TenrecAgent::TenrecAgent(std::string name, int64_t id, uint32_t world, uint64_t incarnation,
                         std::string host_address, std::shared_ptr<Options> options,
                         milliseconds timeout, unsigned num_worker_threads,
                         std::unique_ptr<rpc::RequestCallback> cb)
    : RpcAgent(rpc::WorkerInfo(std::move(name), id), std::move(cb), timeout),
      options_(std::move(options)), world_(world), incarnation_(incarnation),
      host_address_(std::move(host_address)), pool_(num_worker_threads), patience_(PATIENCE)
{
    tenrec_backend_user user{};
    tenrec_member me{};
    tenrec_error err;

    user.size = sizeof user;
    user.deliver = onDeliver;
    user.place = onPlace;
    user.peer_lost = onPeerLost;
    user.wake = onWake;
    user.arg = this;
    me.size = sizeof me;
    me.id = workerInfo_.id_;
    me.incarnation = incarnation_;
    me.name = workerInfo_.name_.c_str();
    me.address = host_address_.c_str();
    if (tenrec_init_backend(options_->get(), &user, &me, world_, &backend_, &err) != TENREC_OK)
        raise(err);
}

TenrecAgent::~TenrecAgent()
{
    if (rpcAgentRunning_.load())
        shutdown();
    tenrec_backend_drop(backend_);
}

std::string TenrecAgent::address() const
{
    return tenrec_backend_address(backend_);
}

std::string TenrecAgent::backendName() const
{
    return tenrec_backend_name(backend_);
}

void TenrecAgent::meet(const c10::intrusive_ptr<c10d::Store> &store, std::vector<Member> members,
                       std::unordered_map<std::string, rpc::DeviceMap> device_maps)
{
    std::vector<std::string> names;

    members_ = std::move(members);
    device_maps_ = std::move(device_maps);
    infos_.reserve(members_.size());
    for (const Member &m : members_) {
        const auto id = (rpc::worker_id_t)infos_.size();
        infos_.emplace_back(m.name, id);
        ids_[m.name] = id;
        names.push_back(m.name);
    }
    store_timeout_ = store->getTimeout();
    group_ = std::make_unique<Group>(store, std::move(names), workerInfo_.id_);
}

void TenrecAgent::startImpl()
{
    std::vector<tenrec_member> all(members_.size());
    tenrec_error err;

    for (size_t i = 0; i < all.size(); i++) {
        all[i] = {};
        all[i].size = sizeof all[i];
        all[i].id = (tenrec_peer)i;
        all[i].incarnation = members_[i].incarnation;
        all[i].name = members_[i].name.c_str();
        all[i].address = members_[i].address.c_str();
    }
    if (tenrec_backend_start(backend_, all.data(), (uint32_t)all.size(), &err) != TENREC_OK)
        raise(err);
}

void TenrecAgent::setPatience(milliseconds limit)
{
    patience_ = limit;
}

void TenrecAgent::shutdownImpl()
{
    // Threads that are left alone use the agent: it is never freed then.
    static auto *kept = new std::vector<std::shared_ptr<rpc::RpcAgent>>;

    tenrec_backend_stop(backend_);
    failAll(TENREC_ANONYMOUS, "RPC was shut down on this worker before the answer came");
    const unsigned left = pool_.stop(patience_);
    if (left == 0)
        return;
    LOG(WARNING) << "TENREC: " << left << " threads still run functions on '" << workerInfo_.name_
                 << "' after its shutdown";
    if (rpc::RpcAgent::isCurrentRpcAgentSet())
        kept->push_back(rpc::RpcAgent::getCurrentRpcAgent());
}

// A message that this thread is handing to the chain.
struct TenrecAgent::Sending {
    const Outgoing *out;
    bool failed;
    Call call;
    std::string text;
};

thread_local TenrecAgent::Sending *TenrecAgent::sending_ = nullptr;

// ---- calls -------------------------------------------------------------------

c10::intrusive_ptr<rpc::JitFuture> TenrecAgent::send(const rpc::WorkerInfo &to,
                                                     c10::intrusive_ptr<Message> message,
                                                     float rpcTimeoutSeconds,
                                                     const rpc::DeviceMap &)
{
    TORCH_CHECK(message->isRequest(), "TenrecAgent::send(..) is only for sending requests.");
    if (!rpcAgentRunning_.load())
        throw std::runtime_error(c10::str("Node ", workerInfo_.id_,
                                          " tried to send() a message of type ", message->type(),
                                          " but RPC is no longer running on this node."));
    TORCH_CHECK(to.id_ >= 0 && (size_t)to.id_ < infos_.size(), "Unknown destination worker ", to);

    const milliseconds timeout =
        rpcTimeoutSeconds == rpc::kUnsetRpcTimeout
            ? getRpcTimeout()
            : milliseconds(static_cast<int>(rpcTimeoutSeconds * rpc::kSecToMsConversion));
    const uint64_t deadline =
        timeout.count() > 0 ? now_ns() + (uint64_t)timeout.count() * 1000000 : 0;
    auto future = c10::make_intrusive<rpc::JitFuture>(at::AnyClassType::get(), getDevices());
    Outgoing *out = Outgoing::make(std::move(message), 0);

    out->agent = this;
    out->msg.deadline_ns = deadline;
    out->msg.flags = TENREC_MSG_MAY_WAIT;
    {
        std::unique_lock<std::mutex> hold(lock_);
        counted_.wait(hold, [this] { return !counting_; });
        out->msg.id = next_id_++;
        pending_.emplace(out->msg.id, Call{ future, deadline, timeout, to.id_ });
        client_calls_++;
    }
    if (deadline)
        tenrec_backend_wake_at(backend_, deadline);
    // What fails while it is sent has failed when we return: the owner of a reference
    // to itself would wait for ever for one that was not even sent.
    Sending sending{ out, false, {}, {} };
    Sending *const outer = std::exchange(sending_, &sending);
    tenrec_backend_send(backend_, to.id_, &out->msg, { onSent, out });
    sending_ = outer;
    if (sending.failed)
        finish(sending.call, {}, sending.text);
    return future;
}

bool TenrecAgent::take(int64_t id, Call &ret)
{
    std::lock_guard<std::mutex> hold(lock_);
    auto at = pending_.find(id);

    if (at == pending_.end())
        return false;
    ret = std::move(at->second);
    pending_.erase(at);
    return true;
}

void TenrecAgent::fail(Call call, std::string text)
{
    pool_.run(Pool::ANSWERS,
              std::make_unique<Answer>(*this, std::move(call), nullptr, std::move(text)));
}

void TenrecAgent::failAll(tenrec_peer to, const std::string &text)
{
    std::vector<Call> lost;
    {
        std::lock_guard<std::mutex> hold(lock_);
        for (auto at = pending_.begin(); at != pending_.end();) {
            if (to == TENREC_ANONYMOUS || at->second.to == to) {
                lost.push_back(std::move(at->second));
                at = pending_.erase(at);
            } else {
                ++at;
            }
        }
    }
    for (Call &call : lost)
        fail(std::move(call), text);
}

void TenrecAgent::expire()
{
    const uint64_t now = now_ns();
    std::vector<Call> late;
    uint64_t next = 0;
    {
        std::lock_guard<std::mutex> hold(lock_);
        for (auto at = pending_.begin(); at != pending_.end();) {
            const uint64_t deadline = at->second.deadline_ns;
            if (deadline && deadline <= now) {
                late.push_back(std::move(at->second));
                at = pending_.erase(at);
                continue;
            }
            if (deadline && (!next || deadline < next))
                next = deadline;
            ++at;
        }
    }
    for (Call &call : late) {
        const std::string text = timeout_text(call.timeout);
        fail(std::move(call), text);
    }
    if (next)
        tenrec_backend_wake_at(backend_, next);
}

void TenrecAgent::finish(Call &call, const c10::intrusive_ptr<Message> &response,
                         const std::string &error)
{
    try {
        if (!response) {
            call.future->setError(std::make_exception_ptr(std::runtime_error(error)));
        } else if (response->type() == rpc::EXCEPTION) {
            const std::vector<char> &text = response->payload();
            call.future->setError(
                std::make_exception_ptr(std::runtime_error({ text.begin(), text.end() })));
        } else {
            auto storages = response->getStorages();
            call.future->markCompleted(c10::IValue(response), std::move(storages));
        }
    } catch (const std::exception &e) {
        LOG(ERROR) << "TENREC: a callback of a future failed: " << e.what();
    }
    call.future.reset();
    std::lock_guard<std::mutex> hold(lock_);
    if (--client_calls_ == 0)
        quiet_.notify_all();
}

void TenrecAgent::onSent(void *arg, const tenrec_error *err)
{
    auto *out = static_cast<Outgoing *>(arg);
    auto *agent = static_cast<TenrecAgent *>(out->agent);
    Call call;

    if (err && agent && agent->take(out->msg.id, call)) {
        const bool late = err->code == TENREC_ETIMEDOUT;
        const std::string text = late ? timeout_text(call.timeout) : text_of(err->code, err->text);
        if (sending_ && sending_->out == out)
            *sending_ = { out, true, std::move(call), text };
        else
            agent->fail(std::move(call), text);
    }
    out->drop();
}

void TenrecAgent::onPeerLost(void *arg, tenrec_peer peer, const tenrec_error *why)
{
    static_cast<TenrecAgent *>(arg)->failAll(peer, text_of(why->code, why->text));
}

void TenrecAgent::onWake(void *arg)
{
    static_cast<TenrecAgent *>(arg)->expire();
}

// ---- what comes --------------------------------------------------------------

tenrec_status TenrecAgent::onPlace(void *arg, tenrec_peer, tenrec_msg *msg, tenrec_error *err)
{
    auto *agent = static_cast<TenrecAgent *>(arg);
    tenrec_error why;
    tenrec_status st = tenrec_backend_place(msg, &why);
    Call call;

    if (st == TENREC_OK)
        return st;
    if ((msg->type & TENREC_MSG_RESPONSE_BIT) && agent->take(msg->id, call))
        agent->fail(std::move(call), why.text);
    if (err)
        *err = why;
    return st;
}

void TenrecAgent::onDeliver(void *arg, tenrec_peer from, tenrec_msg *msg)
{
    auto *agent = static_cast<TenrecAgent *>(arg);
    Call call;

    if (msg->type & TENREC_MSG_RESPONSE_BIT) {
        if (agent->take(msg->id, call))
            agent->pool_.run(Pool::ANSWERS,
                             std::make_unique<Answer>(*agent, std::move(call), msg, ""));
        else
            msg->release(msg); // it came too late
        return;
    }
    {
        std::lock_guard<std::mutex> hold(agent->lock_);
        agent->server_calls_++;
    }
    agent->pool_.run(Pool::REQUESTS, std::make_unique<Request>(*agent, from, msg));
}

void TenrecAgent::serve(tenrec_peer from, const tenrec_route &route,
                        const c10::intrusive_ptr<Message> &request)
{
    const int64_t id = request->id();
    c10::intrusive_ptr<rpc::JitFuture> future;

    try {
        future = (*cb_)(*request, {});
    } catch (const std::exception &) {
        future = c10::make_intrusive<rpc::JitFuture>(at::AnyClassType::get());
        future->setError(std::current_exception());
    }
    {
        std::lock_guard<std::mutex> hold(lock_);
        server_async_calls_++;
    }
    future->addCallback([this, from, route, id](rpc::JitFuture &done) {
        {
            std::lock_guard<std::mutex> hold(lock_);
            server_async_calls_--;
        }
        reply(from, route, id, done);
    });
}

void TenrecAgent::reply(tenrec_peer from, const tenrec_route &route, int64_t id,
                        rpc::JitFuture &future)
{
    {
        std::lock_guard<std::mutex> hold(lock_);
        server_calls_--;
    }
    try {
        if (future.hasError())
            sendReply(from, route, id,
                      rpc::createExceptionResponse(future.tryRetrieveErrorMessage(), id));
        else
            sendReply(from, route, id, future.value().toCustomClass<Message>());
    } catch (const std::exception &e) {
        sendReply(from, route, id, rpc::createExceptionResponse(e, id));
    }
}

void TenrecAgent::sendReply(tenrec_peer from, const tenrec_route &route, int64_t id,
                            c10::intrusive_ptr<Message> response)
{
    Outgoing *out = Outgoing::make(std::move(response), id);

    out->msg.route = route;
    out->msg.flags = TENREC_MSG_CONTROL; // a full queue must not lose it
    tenrec_backend_send(backend_, from, &out->msg, { onSent, out });
}

// ---- who is there ------------------------------------------------------------

const rpc::WorkerInfo &TenrecAgent::getWorkerInfo(const std::string &name) const
{
    const auto at = ids_.find(name);

    TORCH_CHECK(at != ids_.end(), "could not find destination '", name, "' among ", infos_.size(),
                " workers");
    return infos_[(size_t)at->second];
}

const rpc::WorkerInfo &TenrecAgent::getWorkerInfo(rpc::worker_id_t id) const
{
    TORCH_CHECK(id >= 0 && (size_t)id < infos_.size(), "could not find destination ", id, " among ",
                infos_.size(), " workers");
    return infos_[(size_t)id];
}

std::vector<rpc::WorkerInfo> TenrecAgent::getWorkerInfos() const
{
    return infos_;
}

rpc::DeviceMap TenrecAgent::getDeviceMap(const rpc::WorkerInfo &dst) const
{
    const auto at = device_maps_.find(dst.name_);

    return at == device_maps_.end() ? rpc::DeviceMap() : at->second;
}

// ---- the end of a group ------------------------------------------------------

void TenrecAgent::barrier(milliseconds limit)
{
    group_->sum(0, Clock::now() + limit);
}

bool TenrecAgent::quiet(Group::Deadline until)
{
    std::unique_lock<std::mutex> hold(lock_);

    return quiet_.wait_until(hold, until, [this] { return client_calls_ == 0; });
}

// No call begins while it lives.
struct TenrecAgent::Counting {
    explicit Counting(TenrecAgent &agent) : agent(agent)
    {
        std::lock_guard<std::mutex> hold(agent.lock_);
        agent.counting_ = true;
        calls = agent.client_calls_;
    }

    ~Counting()
    {
        std::lock_guard<std::mutex> hold(agent.lock_);
        agent.counting_ = false;
        agent.counted_.notify_all();
    }

    TenrecAgent &agent;
    int64_t calls;
};

void TenrecAgent::join(bool shutdown, float timeout)
{
    const bool limited = timeout > 0;
    const auto until = Clock::now() + (limited ? milliseconds((int64_t)(timeout * 1000))
                                               : std::chrono::hours(24 * 365));
    const auto limit = [&] { return limited ? until : Clock::now() + store_timeout_; };

    // What is served is somebody's call, and so is what that calls: when nobody
    // waits for an answer at one moment, nobody has anything to do. That moment
    // is the second sum, during which none can begin a call; nobody is kept from
    // it by that, as all have passed the first.
    for (int64_t all = 1; all != 0;) {
        if (!quiet(until))
            throw std::runtime_error(
                c10::str("'", workerInfo_.name_, "' still waits for answers at the limit of join"));
        group_->sum(0, limit());
        const Counting counting(*this);
        all = group_->sum(counting.calls, limit());
    }
    if (shutdown)
        group_->leave(Clock::now() + LEAVE);
}

// ---- for people --------------------------------------------------------------

std::unordered_map<std::string, std::string> TenrecAgent::getMetrics()
{
    std::unordered_map<std::string, std::string> all;
    const unsigned idle = pool_.idle();
    std::lock_guard<std::mutex> hold(lock_);

    all["agent.thread_pool_size"] = std::to_string(pool_.size());
    all["agent.num_idle_threads"] = std::to_string(idle);
    all["agent.client_active_calls"] = std::to_string(client_calls_);
    all["agent.server_active_calls"] = std::to_string(server_calls_);
    all["agent.server_active_async_calls"] = std::to_string(server_async_calls_);
    if (isGILProfilingEnabled())
        all["agent.gil_average_wait_time_us"] =
            std::to_string(gil_waits_ ? (double)gil_wait_us_ / (double)gil_waits_ : 0.0);
    return all;
}

std::unordered_map<std::string, std::string> TenrecAgent::getDebugInfo()
{
    auto all = getMetrics();
    tenrec_sink_fn *add = [](void *arg, const char *key, const char *value) {
        (*static_cast<std::unordered_map<std::string, std::string> *>(arg))[key] = value;
    };

    tenrec_backend_debug_info(backend_, add, &all);
    return all;
}

void TenrecAgent::addGilWaitTime(const std::chrono::microseconds wait)
{
    std::lock_guard<std::mutex> hold(lock_);

    gil_waits_++;
    gil_wait_us_ += (uint64_t)wait.count();
}

} // namespace tenrec_torch
