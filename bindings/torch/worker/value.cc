// SPDX-License-Identifier: Apache-2.0
#include "value.h"

#include <dlpack/dlpack.h>
#include <tenrec/dlpack.h>

namespace tenrec_torch
{

static const int DEEPEST = 64; // as tenrec_value_copy

void raise(const tenrec_error &err)
{
    PyObject *type = PyExc_RuntimeError;

    switch (err.code) {
    case TENREC_ETIMEDOUT:
        type = PyExc_TimeoutError;
        break;
    case TENREC_EPEER_LOST:
    case TENREC_ECONNECT:
        type = PyExc_ConnectionError;
        break;
    case TENREC_EPERM:
        type = PyExc_PermissionError;
        break;
    case TENREC_EINVAL:
    case TENREC_ECONFIG:
        type = PyExc_ValueError;
        break;
    case TENREC_EPEER_UNKNOWN:
    case TENREC_ENOFUNCTION:
    case TENREC_ENOTFOUND:
        type = PyExc_LookupError;
        break;
    default:
        break;
    }
    PyErr_Format(type, "%s: %s", tenrec_status_name(err.code), err.text);
    throw py::error_already_set();
}

Values::Values(py::sequence items)
{
    size_ = items.size();
    try {
        top_ = array(items, 0);
    } catch (...) {
        // A constructor that throws runs no destructor.
        for (struct tenrec_tensor *t : tensors_)
            tenrec_tensor_drop(t);
        throw;
    }
}

Values::~Values()
{
    for (struct tenrec_tensor *t : tensors_)
        tenrec_tensor_drop(t);
}

const std::string &Values::keep(std::string text)
{
    return texts_.emplace_back(std::move(text));
}

const struct tenrec_value *Values::array(py::sequence items, int depth)
{
    std::vector<struct tenrec_value> found;

    found.reserve(items.size());
    for (py::handle item : items)
        found.push_back(value(item, depth));
    return arrays_.emplace_back(std::move(found)).data();
}

struct tenrec_value Values::map(py::dict from, int depth)
{
    std::vector<struct tenrec_entry> found;

    for (auto item : from) {
        struct tenrec_entry entry;

        if (!py::isinstance<py::str>(item.first))
            throw py::type_error("the keys of a dict argument or result must be strings");
        entry.key = keep(item.first.cast<std::string>()).c_str();
        entry.value = value(item.second, depth);
        found.push_back(entry);
    }
    auto &kept = maps_.emplace_back(std::move(found));
    return tenrec_value_map(kept.data(), kept.size());
}

struct tenrec_value Values::tensor(py::handle from)
{
    // DLPack cannot express a tensor that is conjugated or negated lazily.
    py::object plain = from.attr("detach")().attr("resolve_conj")().attr("resolve_neg")();
    py::object capsule = py::module_::import("torch.utils.dlpack").attr("to_dlpack")(plain);
    auto *dl = static_cast<DLManagedTensor *>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    struct tenrec_tensor *t;
    tenrec_error err;

    if (!dl)
        throw py::error_already_set();
    if (tenrec_tensor_from_dlpack(dl, &t, &err) != TENREC_OK)
        raise(err);
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    tensors_.push_back(t);
    return tenrec_value_tensor(t);
}

struct tenrec_value Values::value(py::handle from, int depth)
{
    if (depth > DEEPEST)
        throw py::value_error("nested deeper than 64");
    if (from.is_none())
        return tenrec_value_nil();
    if (py::isinstance<py::bool_>(from))
        return tenrec_value_bool(from.cast<bool>());
    if (py::isinstance<py::int_>(from))
        return tenrec_value_int(from.cast<int64_t>());
    if (py::isinstance<py::float_>(from))
        return tenrec_value_double(from.cast<double>());
    if (py::isinstance<py::str>(from)) {
        const std::string &text = keep(from.cast<std::string>());
        struct tenrec_value v = tenrec_value_text(text.c_str());
        v.n = text.size();
        return v;
    }
    if (py::isinstance<py::bytes>(from)) {
        const std::string &bytes = keep(from.cast<std::string>());
        return tenrec_value_bytes(bytes.data(), bytes.size());
    }
    if (py::isinstance<py::list>(from) || py::isinstance<py::tuple>(from)) {
        py::sequence items = py::reinterpret_borrow<py::sequence>(from);
        return tenrec_value_array(array(items, depth + 1), items.size());
    }
    if (py::isinstance<py::dict>(from))
        return map(py::reinterpret_borrow<py::dict>(from), depth + 1);
    if (py::isinstance(from, py::module_::import("torch").attr("Tensor")))
        return tensor(from);
    throw py::type_error("a value of type '" + std::string(Py_TYPE(from.ptr())->tp_name) +
                         "' cannot be sent, expected None, bool, int, float, str, bytes, list, "
                         "tuple, dict or torch.Tensor");
}

static py::object tensor_to_python(struct tenrec_tensor *t)
{
    struct tenrec_tensor *mine = t;
    DLManagedTensor *dl;
    tenrec_error err;
    tenrec_status st;

    // torch has no read-only tensors: a write would crash the process.
    if (tenrec_tensor_desc(t)->flags & TENREC_TENSOR_READ_ONLY) {
        if (tenrec_tensor_copy(t, &mine, &err) != TENREC_OK)
            raise(err);
    }
    st = tenrec_tensor_to_dlpack(mine, &dl, &err);
    if (mine != t)
        tenrec_tensor_drop(mine);
    if (st != TENREC_OK)
        raise(err);
    // from_dlpack renames the capsule; an unused capsule frees its tensor.
    py::capsule capsule(dl, "dltensor", [](PyObject *c) {
        if (PyCapsule_IsValid(c, "dltensor")) {
            auto *unused = static_cast<DLManagedTensor *>(PyCapsule_GetPointer(c, "dltensor"));
            unused->deleter(unused);
        }
    });
    return py::module_::import("torch.utils.dlpack").attr("from_dlpack")(capsule);
}

py::object to_python(const struct tenrec_value &v)
{
    switch (v.type) {
    case TENREC_VALUE_NIL:
        return py::none();
    case TENREC_VALUE_BOOL:
        return py::bool_(v.u.boolean);
    case TENREC_VALUE_INT:
        return py::int_(v.u.integer);
    case TENREC_VALUE_DOUBLE:
        return py::float_(v.u.number);
    case TENREC_VALUE_TEXT:
        return py::str(v.u.text, v.n);
    case TENREC_VALUE_BYTES:
        return py::bytes(static_cast<const char *>(v.u.bytes), v.n);
    case TENREC_VALUE_ARRAY: {
        py::list items;
        for (uint64_t i = 0; i < v.n; i++)
            items.append(to_python(v.u.array[i]));
        return items;
    }
    case TENREC_VALUE_MAP: {
        py::dict map;
        for (uint64_t i = 0; i < v.n; i++)
            map[v.u.map[i].key] = to_python(v.u.map[i].value);
        return map;
    }
    case TENREC_VALUE_TENSOR:
        return tensor_to_python(v.u.tensor);
    default:
        throw py::type_error(std::string(tenrec_value_type_name(v.type)) +
                             " cannot be converted to Python");
    }
}

} // namespace tenrec_torch
