/* SPDX-License-Identifier: Apache-2.0 */
/* gil.c - the GIL on threads of Tenrec that run many functions. */
#include "python.h"

#include <pthread.h>

static pthread_key_t gil_key;
static pthread_once_t gil_once = PTHREAD_ONCE_INIT;
static bool gil_keyed;

/* The thread ends, and what it had in Python's own key is gone. An interpreter that has ended took
 * the states of its threads along. */
static void gil_forget(void *state)
{
    if (!Py_IsInitialized())
        return;
    PyEval_RestoreThread(state);
    PyThreadState_Clear(state);
    PyThreadState_Delete(PyEval_SaveThread());
}

static void gil_begin(void)
{
    gil_keyed = pthread_key_create(&gil_key, gil_forget) == 0;
}

PyGILState_STATE gil_take(void)
{
    const bool of_python = PyGILState_GetThisThreadState() != NULL;
    PyGILState_STATE gil = PyGILState_Ensure();

    pthread_once(&gil_once, gil_begin);
    if (!of_python && gil_keyed && pthread_setspecific(gil_key, PyThreadState_Get()) == 0)
        (void)PyGILState_Ensure();
    return gil;
}
