/* SPDX-License-Identifier: Apache-2.0 */
#include "python.h"

#include <pthread.h>
#include <unistd.h>

static unsigned count;

static void forked_add(void)
{
    count++;
}

static void forked_register(void)
{
    pthread_atfork(NULL, NULL, forked_add);
}

void forked_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, forked_register);
}

unsigned forked_count(void)
{
    return count;
}

/* As the interpreter does at the end of a program: a code that is no number is printed. */
static int forked_code(PyObject *code)
{
    if (!code || code == Py_None)
        return 0;
    if (PyLong_Check(code))
        return (int)PyLong_AsLong(code);
    PySys_FormatStderr("%S\n", code);
    return 1;
}

static int forked_status(void)
{
    PyObject *type, *value, *traceback;

    if (!PyErr_ExceptionMatches(PyExc_SystemExit)) {
        PyErr_Print();
        return 1;
    }
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    return forked_code(value ? PyObject_GetAttrString(value, "code") : NULL);
}

bool forked_since(unsigned before)
{
    if (count == before)
        return false;
    if (PyErr_Occurred())
        _exit(forked_status());
    return true;
}
