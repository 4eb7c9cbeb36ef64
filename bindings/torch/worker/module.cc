// SPDX-License-Identifier: Apache-2.0
/* module.cc - tenrec_torch._worker, the base of tenrec_torch/worker.py. */
#include "worker.h"

#include <pybind11/stl.h>

using namespace tenrec_torch;

PYBIND11_MODULE(_worker, m)
{
    py::class_<Future>(m, "Future", "The result of a call, once it is complete.")
        .def(
            "wait", &Future::wait, py::arg("timeout") = py::none(),
            "Returns the result, or raises the error of the call. Waits at most `timeout` seconds.")
        .def("done", &Future::done);
    py::class_<Worker>(m, "Worker")
        .def(py::init<const std::optional<std::string> &, const py::dict &>(), py::arg("config"),
             py::arg("overrides"))
        .def("register", &Worker::register_function, py::arg("name"), py::arg("function"))
        .def("init_rpc", &Worker::init_rpc)
        .def("shutdown", &Worker::shutdown, py::arg("graceful") = true,
             py::arg("timeout") = py::none())
        .def("call_async", &Worker::call_async, py::arg("to"), py::arg("function"), py::kw_only(),
             py::arg("timeout") = py::none())
        .def("call", &Worker::call, py::arg("to"), py::arg("function"), py::kw_only(),
             py::arg("timeout") = py::none())
        .def_property_readonly("name", &Worker::name)
        .def_property_readonly("names", &Worker::names)
        .def("view", &Worker::view, py::arg("version"),
             "Returns version and members of a dynamic group, once it has this version.");
}
