/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - Python values as arguments and results of Tenrec, and back. */
#ifndef TORCH_WORKER_VALUE_H
#define TORCH_WORKER_VALUE_H

#include <deque>
#include <pybind11/pybind11.h>
#include <string>
#include <tenrec/tenrec.h>
#include <vector>

namespace tenrec_torch
{

namespace py = pybind11;

/* Python values as Tenrec values. Owns the memory that these borrow; tensors are
 * shared, not copied. All but the getters need the GIL. */
class Values
{
  public:
    /* One value for each item of `items`. Throws TypeError or ValueError with the
     * place of a value that cannot be sent. */
    explicit Values(py::sequence items);
    ~Values();
    Values(const Values &) = delete;
    Values &operator=(const Values &) = delete;

    const struct tenrec_value *data() const
    {
        return top_;
    }
    size_t size() const
    {
        return size_;
    }

  private:
    const struct tenrec_value *array(py::sequence items, int depth);
    struct tenrec_value value(py::handle from, int depth);
    struct tenrec_value map(py::dict from, int depth);
    struct tenrec_value tensor(py::handle from);
    const std::string &keep(std::string text);

    std::deque<std::vector<struct tenrec_value>> arrays_;
    std::deque<std::vector<struct tenrec_entry>> maps_;
    std::deque<std::string> texts_;
    std::vector<struct tenrec_tensor *> tensors_;
    const struct tenrec_value *top_ = nullptr;
    size_t size_ = 0;
};

/* Makes a Python value; tensors share the memory of `from`. */
py::object to_python(const struct tenrec_value &v);

/* Throws the Python exception for `err`: TimeoutError, ConnectionError, ValueError for
 * wrong arguments and configurations, LookupError for unknown names, else RuntimeError. */
[[noreturn]] void raise(const tenrec_error &err);

} // namespace tenrec_torch

#endif
