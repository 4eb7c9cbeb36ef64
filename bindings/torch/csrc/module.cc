// SPDX-License-Identifier: Apache-2.0
// module.cc - the Python module tenrec_torch._C.
#include "agent.h"
#include "store.h"

#include <torch/csrc/distributed/rpc/request_callback_impl.h>
#include <torch/csrc/distributed/rpc/tensorpipe_agent.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;
using namespace tenrec_torch;
using std::chrono::milliseconds;

namespace
{

constexpr uint64_t FOREVER = UINT64_MAX;

milliseconds from_seconds(double seconds)
{
    return milliseconds((int64_t)(seconds * 1000));
}

// Seconds as in torch: 0 means no limit.
double to_seconds(uint64_t ms)
{
    return ms == FOREVER ? 0 : (double)ms / 1000;
}

void bind_options(py::module_ &m)
{
    py::class_<Options, std::shared_ptr<Options>>(m, "Config")
        .def(py::init<const std::string &, const std::map<std::string, std::string> &>(),
             py::arg("config"), py::arg("values"), py::call_guard<py::gil_scoped_release>())
        .def_property_readonly(
            "rpc_timeout", [](const Options &o) { return to_seconds(o.settings().rpc_timeout_ms); })
        .def_property_readonly(
            "init_timeout",
            [](const Options &o) { return to_seconds(o.settings().init_timeout_ms); })
        .def_property_readonly("num_worker_threads",
                               [](const Options &o) { return o.settings().num_worker_threads; })
        .def_property_readonly(
            "init_method", [](const Options &o) { return std::string(o.settings().init_method); })
        .def_property_readonly("security_mode", &Options::securityMode)
        .def_property_readonly("proves", &Options::proves);
}

c10::intrusive_ptr<c10d::Store> open_store(const Options &config, const std::string &url,
                                           double limit)
{
    return c10::make_intrusive<Store>(config, url, from_seconds(limit));
}

// The destructor waits for the agent's threads, which may need the GIL: release it.
void drop_agent(TenrecAgent *agent)
{
    if (!agent->isOurs())
        return; // its threads are the parent's
    if (Py_IsInitialized() && PyGILState_Check()) {
        py::gil_scoped_release released;
        delete agent;
    } else {
        delete agent;
    }
}

std::shared_ptr<TenrecAgent> make_agent(std::string name, int64_t id, uint32_t world,
                                        uint64_t incarnation, uint64_t token,
                                        std::string host_address, std::shared_ptr<Options> config,
                                        double rpc_timeout, unsigned num_worker_threads)
{
    return { new TenrecAgent(std::move(name), id, world, incarnation, token,
                             std::move(host_address), std::move(config), from_seconds(rpc_timeout),
                             num_worker_threads, std::make_unique<rpc::RequestCallbackImpl>()),
             drop_agent };
}

// Id, name, address, incarnation and token.
using Record = std::tuple<rpc::worker_id_t, std::string, std::string, uint64_t, uint64_t>;

Member member_of(const Record &record)
{
    auto &[id, name, address, incarnation, token] = record;

    return { id, name, address, incarnation, token };
}

void meet(TenrecAgent &agent, const c10::intrusive_ptr<c10d::Store> &store,
          const std::vector<Record> &members,
          std::unordered_map<std::string, rpc::DeviceMap> device_maps)
{
    std::vector<Member> all;

    for (const Record &record : members)
        all.push_back(member_of(record));
    agent.meet(store, std::move(all), std::move(device_maps));
}

void bind_agent(py::module_ &m)
{
    using Release = py::call_guard<py::gil_scoped_release>;
    py::class_<TenrecAgent, rpc::RpcAgent, std::shared_ptr<TenrecAgent>>(m, "TenrecAgent")
        .def(py::init(&make_agent), py::arg("name"), py::arg("id"), py::arg("world_size"),
             py::arg("incarnation"), py::arg("token"), py::arg("host_address"), py::arg("config"),
             py::arg("rpc_timeout"), py::arg("num_worker_threads"), Release())
        .def("address", &TenrecAgent::address, Release())
        .def("backend_name", &TenrecAgent::backendName)
        .def("meet", &meet, py::arg("store"), py::arg("members"), py::arg("device_maps"), Release())
        .def("use_devices", &TenrecAgent::useDevices, py::arg("devices"), py::arg("answer_maps"),
             Release())
        .def(
            "add_member",
            [](TenrecAgent &agent, const Record &record) { agent.addMember(member_of(record)); },
            py::arg("record"), Release())
        .def("forget_member", &TenrecAgent::forgetMember, py::arg("id"), Release())
        .def("remove_member", &TenrecAgent::removeMember, py::arg("id"), py::arg("why"), Release())
        .def("open_calls_to", &TenrecAgent::openCallsTo, py::arg("id"), Release())
        .def(
            "barrier",
            [](TenrecAgent &agent, double seconds) { agent.barrier(from_seconds(seconds)); },
            py::arg("timeout"), Release())
        .def(
            "set_patience",
            [](TenrecAgent &agent, double seconds) { agent.setPatience(from_seconds(seconds)); },
            py::arg("seconds"))
        .def("join", &TenrecAgent::join, py::arg("shutdown") = false, py::arg("timeout") = 0,
             Release())
        .def(
            "shutdown",
            [](TenrecAgent &agent) {
                if (agent.isOurs())
                    agent.shutdown();
            },
            Release())
        .def(
            "get_worker_info",
            [](const TenrecAgent &agent) -> const rpc::WorkerInfo & {
                return agent.rpc::RpcAgent::getWorkerInfo();
            },
            py::return_value_policy::reference_internal)
        .def("get_worker_info",
             py::overload_cast<const std::string &>(&TenrecAgent::getWorkerInfo, py::const_),
             py::return_value_policy::reference_internal)
        .def("get_worker_info",
             py::overload_cast<rpc::worker_id_t>(&TenrecAgent::getWorkerInfo, py::const_),
             py::return_value_policy::reference_internal)
        .def("get_worker_infos", &TenrecAgent::getWorkerInfos)
        .def("_get_device_map", &TenrecAgent::getDeviceMap);
}

} // namespace

PYBIND11_MODULE(_C, m)
{
    py::module_::import("torch"); // knows RpcAgent, Store and WorkerInfo
    bind_options(m);
    m.attr("STORE_GONE") = Group::STORE_GONE;
    m.def("ways_of", [](const rpc::TensorPipeRpcBackendOptions &options) { // hidden from Python
        return std::make_pair(options.transports, options.channels);
    });
    m.def("open_store", &open_store, py::arg("config"), py::arg("url"), py::arg("limit"),
          py::call_guard<py::gil_scoped_release>());
    m.def(
        "has_key", // Python's PrefixStore cannot say
        [](const c10::intrusive_ptr<c10d::Store> &store, const std::string &key) {
            return store->check({ key });
        },
        py::call_guard<py::gil_scoped_release>());
    bind_agent(m);
}
