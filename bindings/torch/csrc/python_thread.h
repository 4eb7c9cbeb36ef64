/* SPDX-License-Identifier: Apache-2.0 */
// python_thread.h - a thread of ours that runs Python now and then.
#pragma once

#include <Python.h>

namespace tenrec_torch
{

// Keeps one Python thread state for as long as it lives, without the GIL: to
// take that costs a tenth then. Not once the interpreter ends: a thread that
// asks for the GIL then is ended on the spot.
class PythonThread
{
  public:
    PythonThread() : gil_(PyGILState_Ensure()), state_(PyEval_SaveThread())
    {
    }

    ~PythonThread()
    {
        if (!Py_IsInitialized() || _Py_IsFinalizing())
            return;
        PyEval_RestoreThread(state_);
        PyGILState_Release(gil_);
    }

    PythonThread(const PythonThread &) = delete;
    PythonThread &operator=(const PythonThread &) = delete;

  private:
    PyGILState_STATE gil_;
    PyThreadState *state_;
};

// Takes the GIL, when it is `wanted` and there is an interpreter that has not ended.
class Gil
{
  public:
    explicit Gil(bool wanted) : taken_(wanted && Py_IsInitialized() && !_Py_IsFinalizing())
    {
        if (taken_)
            state_ = PyGILState_Ensure();
    }

    ~Gil()
    {
        if (taken_)
            PyGILState_Release(state_);
    }

    Gil(const Gil &) = delete;
    Gil &operator=(const Gil &) = delete;

  private:
    const bool taken_;
    PyGILState_STATE state_{};
};

} // namespace tenrec_torch
