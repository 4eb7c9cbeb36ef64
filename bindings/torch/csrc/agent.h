/* SPDX-License-Identifier: Apache-2.0 */
// agent.h - torch's RpcAgent over any backend of Tenrec.
//
// libtorch handles the contents of messages, references, autograd contexts and Python;
// libtenrec transfers messages and matches answers to calls. The code between ends their futures
// (calls.h), serves requests (server.h), runs tasks on threads (pool.h), and
// detects that a group is idle (group.h).
#pragma once

#include "calls.h"
#include "group.h"
#include "members.h"
#include "options.h"
#include "server.h"

namespace tenrec_torch
{

namespace rpc = torch::distributed::rpc;

class TenrecAgent : public rpc::RpcAgent
{
  public:
    using rpc::RpcAgent::getWorkerInfo;

    // world         number of workers; 0: a dynamic group
    // token         random bits of this process's record: see tenrec_member
    // host_address  address for members on other hosts; "": all are on this host
    TenrecAgent(std::string name, int64_t id, uint32_t world, uint64_t incarnation, uint64_t token,
                std::string host_address, std::shared_ptr<Options> options,
                std::chrono::milliseconds timeout, unsigned num_worker_threads,
                std::unique_ptr<rpc::RequestCallback> cb);
    ~TenrecAgent() override;

    // The own address, and the records of all members; both before start. In a dynamic group these
    // are the own record alone, and others are added and removed after the start.
    std::string address() const;
    void meet(const c10::intrusive_ptr<c10d::Store> &store, std::vector<Member> members,
              std::unordered_map<std::string, rpc::DeviceMap> device_maps);
    // Uses these devices from now on, and these maps for results of requests of their callers.
    void useDevices(std::vector<c10::Device> devices,
                    const std::unordered_map<rpc::worker_id_t, rpc::DeviceMap> &answer_maps);
    void addMember(Member member);
    // No call to the member begins any more; its own calls are served, and answers read.
    void forgetMember(rpc::worker_id_t id);
    // Calls to it fail with this reason.
    void removeMember(rpc::worker_id_t id, const std::string &why);
    int64_t openCallsTo(rpc::worker_id_t id) const;
    // A barrier of all workers of a static group.
    void barrier(std::chrono::milliseconds limit);
    std::string backendName() const;

    c10::intrusive_ptr<rpc::JitFuture> send(const rpc::WorkerInfo &to,
                                            c10::intrusive_ptr<Message> message,
                                            float rpcTimeoutSeconds = rpc::kUnsetRpcTimeout,
                                            const rpc::DeviceMap &deviceMap = {}) override;
    const rpc::WorkerInfo &getWorkerInfo(const std::string &name) const override;
    const rpc::WorkerInfo &getWorkerInfo(rpc::worker_id_t id) const override;
    std::vector<rpc::WorkerInfo> getWorkerInfos() const override;
    void join(bool shutdown = false, float timeout = 0) override;
    void sync() override
    {
    }
    void startImpl() override;
    void shutdownImpl() override;
    // The time that shutdown waits for running functions; shorter at the end of the
    // interpreter.
    void setPatience(std::chrono::milliseconds limit);
    // Returns false in a forked child, which has the agent's memory but not its threads:
    // there the agent sends nothing, and is neither shut down nor freed.
    bool isOurs() const;
    std::unordered_map<std::string, std::string> getMetrics() override;
    std::unordered_map<std::string, std::string> getDebugInfo() override;
    rpc::DeviceMap getDeviceMap(const rpc::WorkerInfo &dst) const override;
    const std::vector<c10::Device> &getDevices() const override;
    void addGilWaitTime(const std::chrono::microseconds wait) override;

  private:
    // TRIED: a try is in flight.
    enum class Contact { NONE, TRIED, REFUSED };

    void checkOurs() const;
    bool refuses(rpc::worker_id_t id);
    c10::intrusive_ptr<rpc::JitFuture> sendToDeparted(const rpc::WorkerInfo &to,
                                                      const Message &message) const;

    // Ends the calls to a worker; -1: to any.
    void failCalls(tenrec_peer to, tenrec_status code, const char *text);

    // Callbacks of the chain; `arg` is the agent.
    static void onDeliver(void *arg, tenrec_peer from, tenrec_msg *msg) noexcept;
    static tenrec_status onPlace(void *arg, tenrec_peer from, tenrec_msg *msg,
                                 tenrec_error *err) noexcept;
    static void onContact(void *arg, const tenrec_error *err) noexcept; // arg: a Contact

    const std::shared_ptr<Options> options_;
    const pid_t process_;
    const uint32_t world_;
    const uint64_t incarnation_;
    const std::string host_address_;
    tenrec_chain *backend_ = nullptr;
    Devices devices_;
    Pool pool_;
    Calls calls_;
    const std::shared_ptr<Server> server_;
    std::unique_ptr<Group> group_; // from meet on, as are the next four; null if dynamic
    std::vector<std::atomic<Contact>> contacts_; // by id; empty if dynamic
    std::chrono::milliseconds store_timeout_{ 0 };
    Members members_;
    std::unordered_map<std::string, rpc::DeviceMap> device_maps_;
    std::chrono::milliseconds patience_;

    std::mutex lock_; // guards the next two
    uint64_t gil_waits_ = 0, gil_wait_us_ = 0;
};

} // namespace tenrec_torch
