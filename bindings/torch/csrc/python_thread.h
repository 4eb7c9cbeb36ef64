/* SPDX-License-Identifier: Apache-2.0 */
// python_thread.h - Python on threads of this extension.
#pragma once

#include "compat.h"

namespace tenrec_torch
{

// Keeps one Python thread state, without the GIL, for its lifetime: acquiring the GIL
// then costs a tenth. Not while the interpreter finalizes, which kills any thread that
// acquires the GIL.
class PythonThread
{
  public:
    PythonThread() : gil_(PyGILState_Ensure()), state_(PyEval_SaveThread())
    {
    }

    ~PythonThread()
    {
        if (!Py_IsInitialized() || compat_is_finalizing())
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

// Acquires the GIL if `wanted` and if the interpreter has not ended.
class Gil
{
  public:
    explicit Gil(bool wanted) : taken_(wanted && Py_IsInitialized() && !compat_is_finalizing())
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
