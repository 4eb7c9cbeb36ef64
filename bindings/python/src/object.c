/* SPDX-License-Identifier: Apache-2.0 */
#include "value.h"

#include <stdlib.h>

struct object {
    struct garbage garbage; /* first */
    PyObject *python;
};

static void object_release(struct garbage *g)
{
    Py_DECREF(((struct object *)g)->python);
    free(g);
}

static void object_unused(void *data, void *arg)
{
    (void)arg;
    garbage_put(data);
}

static const struct tenrec_object_type object_type = {
    .size = sizeof object_type,
    .name = "Python object",
    .free_fn = object_unused,
};

struct tenrec_object *object_wrap(PyObject *o)
{
    struct object *data = calloc(1, sizeof *data);
    struct tenrec_object *made;
    tenrec_error err;

    if (!data) {
        PyErr_NoMemory();
        return NULL;
    }
    data->garbage.release = object_release;
    data->python = Py_NewRef(o);
    if (tenrec_object_new(&object_type, data, &made, &err) == TENREC_OK)
        return made;
    object_release(&data->garbage);
    error_raise(&err);
    return NULL;
}

PyObject *object_unwrap(const struct tenrec_object *o)
{
    const struct object *data = tenrec_object_data(o, &object_type);

    if (data)
        return Py_NewRef(data->python);
    PyErr_SetString(PyExc_TypeError, "an object of another language cannot be used in Python");
    return NULL;
}
