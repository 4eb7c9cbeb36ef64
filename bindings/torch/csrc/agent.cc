// SPDX-License-Identifier: Apache-2.0
#include "agent.h"

#include "payload.h"
#include "reference.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <time.h>
#include <torch/csrc/distributed/rpc/rref_proto.h>
#include <torch/csrc/distributed/rpc/utils.h>
#include <unistd.h>
#include <utility>

namespace tenrec_torch
{

namespace
{

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Time that shutdown waits for running functions.
constexpr milliseconds PATIENCE(30000);
// Time that rank 0 serves the store for the others.
constexpr milliseconds LEAVE(5000);
// Upper limit of timeouts: 31 years.
constexpr double LONGEST_MS = 1e12;
// Timeout of a store that has none.
constexpr std::chrono::hours MEET(24);

uint64_t now_ns()
{
    timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// Messages that libtorch sends itself, also while a Python object is freed: with the GIL
// and a lock of libtorch held, so the send must not wait for a full queue.
bool is_control(uint32_t type)
{
    return type == rpc::RREF_USER_DELETE || type == rpc::RREF_FORK_REQUEST ||
           type == rpc::RREF_CHILD_ACCEPT || type == rpc::CLEANUP_AUTOGRAD_CONTEXT_REQ;
}

// The owner's confirmation of a reference begins the functions that have it as an argument.
Pool::Lane lane_of(uint32_t request)
{
    return request == rpc::RREF_FORK_REQUEST ? Pool::REQUESTS : Pool::ANSWERS;
}

// Only 0 means no timeout: less than a millisecond counts as one.
milliseconds to_milliseconds(float seconds)
{
    const double ms = seconds * rpc::kSecToMsConversion;

    TORCH_CHECK(!std::isnan(ms), "a timeout of nan seconds");
    if (ms != 0 && std::abs(ms) < 1)
        return milliseconds(ms > 0 ? 1 : -1);
    return milliseconds((int64_t)std::clamp(ms, -LONGEST_MS, LONGEST_MS));
}

// 0: none. A negative timeout has expired before the call begins.
uint64_t deadline_of(milliseconds timeout)
{
    const int64_t ms = std::min(timeout.count(), (int64_t)LONGEST_MS);

    return ms ? now_ns() + (uint64_t)std::max(ms, (int64_t)0) * 1000000 : 0;
}

[[noreturn]] void raise(const tenrec_error &err)
{
    throw std::runtime_error(err.text);
}

} // namespace

// ---- life --------------------------------------------------------------------

TenrecAgent::TenrecAgent(std::string name, int64_t id, uint32_t world, uint64_t incarnation,
                         uint64_t token, std::string host_address, std::shared_ptr<Options> options,
                         milliseconds timeout, unsigned num_worker_threads,
                         std::unique_ptr<rpc::RequestCallback> cb)
    : RpcAgent(rpc::WorkerInfo(std::move(name), id), std::move(cb), timeout),
      options_(std::move(options)), process_(getpid()), world_(world), incarnation_(incarnation),
      host_address_(std::move(host_address)), pool_(num_worker_threads),
      calls_(pool_, devices_, options_->proves()),
      server_(std::make_shared<Server>(pool_, *cb_, devices_, options_->proves())),
      patience_(PATIENCE)
{
    tenrec_chain_user user{};
    tenrec_member me{};
    tenrec_error err;

    user.size = sizeof user;
    user.deliver = onDeliver;
    user.place = onPlace;
    user.payload_new = Payload::onNew;
    user.payload_drop = Payload::onDrop;
    user.arg = this;
    me.size = sizeof me;
    me.id = workerInfo_.id_;
    me.incarnation = incarnation_;
    me.token = token;
    me.name = workerInfo_.name_.c_str();
    me.address = host_address_.c_str();
    if (tenrec_chain_new(options_->get(), &user, &me, world_, &backend_, &err) != TENREC_OK)
        raise(err);
    server_->open(backend_);
}

TenrecAgent::~TenrecAgent()
{
    if (rpcAgentRunning_.load())
        shutdown();
    server_->close();
    tenrec_chain_drop(backend_);
}

std::string TenrecAgent::address() const
{
    return tenrec_chain_address(backend_);
}

std::string TenrecAgent::backendName() const
{
    return tenrec_chain_name(backend_);
}

void TenrecAgent::meet(const c10::intrusive_ptr<c10d::Store> &store, std::vector<Member> members,
                       std::unordered_map<std::string, rpc::DeviceMap> device_maps)
{
    std::vector<std::string> names;

    device_maps_ = std::move(device_maps);
    for (Member &m : members) {
        names.push_back(m.name);
        members_.add(std::move(m));
    }
    store_timeout_ = store->getTimeout();
    if (store_timeout_ == c10d::Store::kNoTimeout)
        store_timeout_ = MEET;
    if (world_)
        group_ = std::make_unique<Group>(store, std::move(names), workerInfo_.id_);
    contacts_ = std::vector<std::atomic<Contact>>(world_);
}

void TenrecAgent::useDevices(
    std::vector<c10::Device> devices,
    const std::unordered_map<rpc::worker_id_t, rpc::DeviceMap> &answer_maps)
{
    devices_.use(backend_, std::move(devices));
    for (const auto &[caller, map] : answer_maps)
        devices_.setAnswerMap(caller, map);
}

void TenrecAgent::addMember(Member member)
{
    const tenrec_member added = members_.add(std::move(member));

    tenrec_chain_add_member(backend_, &added);
}

void TenrecAgent::forgetMember(rpc::worker_id_t id)
{
    members_.remove(id);
}

void TenrecAgent::removeMember(rpc::worker_id_t id, const std::string &why)
{
    members_.remove(id);
    tenrec_chain_remove_member(backend_, id);
    failCalls(id, TENREC_EPEER_LOST, why.c_str());
}

void TenrecAgent::failCalls(tenrec_peer to, tenrec_status code, const char *text)
{
    tenrec_error why;

    tenrec_fail(&why, code, "%s", text);
    tenrec_chain_end_calls(backend_, to, &why);
}

int64_t TenrecAgent::openCallsTo(rpc::worker_id_t id) const
{
    return calls_.openTo(id);
}

void TenrecAgent::startImpl()
{
    const std::vector<tenrec_member> all = members_.all();
    tenrec_error err;

    if (tenrec_chain_start(backend_, all.data(), (uint32_t)all.size(), &err) != TENREC_OK)
        raise(err);
    pool_.read([backend = backend_](const tenrec_wait &wait) {
        return tenrec_chain_lead(backend, &wait) == TENREC_OK;
    });
}

bool TenrecAgent::isOurs() const
{
    return getpid() == process_;
}

// Throws in a forked child.
void TenrecAgent::checkOurs() const
{
    TORCH_CHECK(isOurs(), "this process was forked from the worker '", workerInfo_.name_,
                "' and is no worker: only the parent can use RPC");
}

void TenrecAgent::setPatience(milliseconds limit)
{
    patience_ = limit;
}

void TenrecAgent::shutdownImpl()
{
    // Abandoned threads still use the agent: it is never freed then.
    static auto *kept = new std::vector<std::shared_ptr<rpc::RpcAgent>>;

    failCalls(-1, TENREC_ESHUTDOWN, "RPC was shut down on this worker before the answer arrived");
    tenrec_chain_stop(backend_);
    const unsigned left = pool_.stop(patience_);
    if (left == 0)
        return;
    LOG(WARNING) << "TENREC: " << left << " threads still run functions on '" << workerInfo_.name_
                 << "' after its shutdown";
    if (rpc::RpcAgent::isCurrentRpcAgentSet())
        kept->push_back(rpc::RpcAgent::getCurrentRpcAgent());
}

// ---- calls -------------------------------------------------------------------

c10::intrusive_ptr<rpc::JitFuture> TenrecAgent::send(const rpc::WorkerInfo &to,
                                                     c10::intrusive_ptr<Message> message,
                                                     float rpcTimeoutSeconds,
                                                     const rpc::DeviceMap &deviceMap)
{
    TORCH_CHECK(message->isRequest(), "TenrecAgent::send(..) is only for sending requests.");
    checkOurs();
    if (!rpcAgentRunning_.load())
        throw std::runtime_error(c10::str("Node ", workerInfo_.id_,
                                          " tried to send() a message of type ", message->type(),
                                          " but RPC is no longer running on this node."));
    if (!members_.has(to))
        return sendToDeparted(to, *message);

    const milliseconds timeout = rpcTimeoutSeconds == rpc::kUnsetRpcTimeout
                                     ? getRpcTimeout()
                                     : to_milliseconds(rpcTimeoutSeconds);
    auto future = c10::make_intrusive<rpc::JitFuture>(at::AnyClassType::get(), getDevices());
    const bool makes_here = to.id_ == workerInfo_.id_ && reference_comes_of(message->type());
    c10::intrusive_ptr<Message> request = makes_here ? message : c10::intrusive_ptr<Message>();
    Outgoing *out = Outgoing::make(
        std::move(message), 0,
        { backend_, to.id_, {}, &pool_, deviceMap.empty() ? getDeviceMap(to) : deviceMap });

    out->msg.deadline_ns = deadline_of(timeout);
    out->msg.flags = is_control(out->msg.type) ? TENREC_MSG_CONTROL : TENREC_MSG_MAY_WAIT;
    out->drop();
    calls_.send(backend_, { future, timeout, to.id_, std::move(request), lane_of(out->msg.type) },
                &out->msg);
    return future;
}

// The owner of a deleted reference has left: the value is gone, too.
c10::intrusive_ptr<rpc::JitFuture> TenrecAgent::sendToDeparted(const rpc::WorkerInfo &to,
                                                               const Message &message) const
{
    if (message.type() != rpc::RREF_USER_DELETE)
        throw std::runtime_error(c10::str("'", to.name_, "' is no member of the group any more"));
    auto done = c10::make_intrusive<rpc::JitFuture>(at::AnyClassType::get());

    done->markCompleted(c10::IValue(rpc::RRefAck().toMessage()));
    return done;
}

// ---- receiving ---------------------------------------------------------------

tenrec_status TenrecAgent::onPlace(void *arg, tenrec_peer from, tenrec_msg *msg,
                                   tenrec_error *err) noexcept
{
    auto *agent = static_cast<TenrecAgent *>(arg);
    const bool answers = msg->type & TENREC_MSG_RESPONSE_BIT;
    const char *refusal =
        answers ? agent->calls_.refusalOf(*msg) : agent->server_->refusalOf(from, *msg);
    tenrec_error why;

    // A refused message gets no memory for its tensors.
    tenrec_status st =
        refusal ? tenrec_fail(&why, TENREC_EPERM, "%s", refusal) : agent->devices_.place(msg, &why);
    if (st == TENREC_OK)
        return st;
    if (refusal && !answers)
        agent->server_->refused();
    if (err)
        *err = why;
    return st;
}

void TenrecAgent::onDeliver(void *arg, tenrec_peer from, tenrec_msg *msg) noexcept
{
    auto *agent = static_cast<TenrecAgent *>(arg);

    if (msg->type & TENREC_MSG_RESPONSE_BIT)
        msg->release(msg); // its call has ended, or went to another worker
    else if (msg->type == TENREC_MSG_CANCEL)
        msg->release(msg); // of no call: see refuses()
    else
        agent->server_->serve(from, msg);
}

// ---- members -----------------------------------------------------------------

const rpc::WorkerInfo &TenrecAgent::getWorkerInfo(const std::string &name) const
{
    return members_.at(name);
}

const rpc::WorkerInfo &TenrecAgent::getWorkerInfo(rpc::worker_id_t id) const
{
    return members_.at(id);
}

std::vector<rpc::WorkerInfo> TenrecAgent::getWorkerInfos() const
{
    return members_.infos();
}

rpc::DeviceMap TenrecAgent::getDeviceMap(const rpc::WorkerInfo &dst) const
{
    const auto at = device_maps_.find(dst.name_);

    return at == device_maps_.end() ? rpc::DeviceMap() : at->second;
}

const std::vector<c10::Device> &TenrecAgent::getDevices() const
{
    return devices_.all();
}

// ---- the end of a group ------------------------------------------------------

void TenrecAgent::onContact(void *arg, const tenrec_error *err) noexcept
{
    *static_cast<std::atomic<Contact> *>(arg) =
        err && err->code == TENREC_ECONNECT && err->os_errno == ECONNREFUSED ? Contact::REFUSED
                                                                             : Contact::NONE;
}

// Returns true if no process listens at the worker's address, as a try of an earlier call has
// found out. A try is a CANCEL of no call, which has no answer: no call may begin while the group
// finds out whether it is idle. It fails in other ways while the worker lives.
bool TenrecAgent::refuses(rpc::worker_id_t id)
{
    std::atomic<Contact> &contact = contacts_[(size_t)id];
    const Contact found = contact;
    tenrec_msg *msg = found == Contact::NONE ? tenrec_msg_new(0, 0) : nullptr;

    if (msg) {
        contact = Contact::TRIED;
        msg->type = TENREC_MSG_CANCEL;
        msg->id = -1;
        msg->flags = TENREC_MSG_CONTROL;
        tenrec_chain_send(backend_, id, msg, { onContact, &contact });
    }
    return found == Contact::REFUSED;
}

void TenrecAgent::barrier(milliseconds limit)
{
    group_->sum(0, Clock::now() + limit);
}

void TenrecAgent::join(bool shutdown, float timeout)
{
    checkOurs();
    const bool limited = timeout > 0;
    const auto until = Clock::now() + (limited ? milliseconds((int64_t)(timeout * 1000))
                                               : std::chrono::hours(24 * 365));
    const auto limit = [&] { return limited ? until : Clock::now() + store_timeout_; };
    const auto lost = [this](rpc::worker_id_t id) { return refuses(id); };

    if (!group_) {
        if (!calls_.waitUntilNone(until))
            throw std::runtime_error(
                c10::str("'", workerInfo_.name_, "' still waits for answers at the limit of join"));
        return;
    }
    // Every served request, and every call it makes in turn, is an open call of some
    // worker: when no worker has an open call at one moment, the group is idle. That
    // moment is the second sum, during which no call can begin; no worker is blocked
    // by that, as all have passed the first sum.
    for (int64_t all = 1; all != 0;) {
        if (!calls_.waitUntilNone(until))
            throw std::runtime_error(
                c10::str("'", workerInfo_.name_, "' still waits for answers at the limit of join"));
        group_->sum(0, limit(), lost);
        const Calls::Count count(calls_);
        all = group_->sum(count.open, limit(), lost);
    }
    if (shutdown)
        group_->leave(Clock::now() + LEAVE);
}

// ---- debug info --------------------------------------------------------------

std::unordered_map<std::string, std::string> TenrecAgent::getMetrics()
{
    std::unordered_map<std::string, std::string> all;

    all["agent.thread_pool_size"] = std::to_string(pool_.size());
    all["agent.num_idle_threads"] = std::to_string(pool_.idle());
    all["agent.client_active_calls"] = std::to_string(calls_.open());
    all["agent.server_active_calls"] = std::to_string(server_->calls());
    all["agent.server_active_async_calls"] = std::to_string(server_->asyncCalls());
    if (isGILProfilingEnabled()) {
        std::lock_guard<std::mutex> hold(lock_);
        all["agent.gil_average_wait_time_us"] =
            std::to_string(gil_waits_ ? (double)gil_wait_us_ / (double)gil_waits_ : 0.0);
    }
    return all;
}

std::unordered_map<std::string, std::string> TenrecAgent::getDebugInfo()
{
    auto all = getMetrics();
    all["agent.server_refused_calls"] = std::to_string(server_->refusedCalls());
    tenrec_sink_fn *add = [](void *arg, const char *key, const char *value) {
        (*static_cast<std::unordered_map<std::string, std::string> *>(arg))[key] = value;
    };

    tenrec_chain_list_debug_info(backend_, add, &all);
    return all;
}

void TenrecAgent::addGilWaitTime(const std::chrono::microseconds wait)
{
    std::lock_guard<std::mutex> hold(lock_);

    gil_waits_++;
    gil_wait_us_ += (uint64_t)wait.count();
}

} // namespace tenrec_torch
