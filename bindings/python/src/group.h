/* SPDX-License-Identifier: Apache-2.0 */
/* group.h - the members of the group: methods of tenrec_rpc._core.Worker. */
#ifndef PYTHON_GROUP_H
#define PYTHON_GROUP_H

#include "python.h"

/* A member is (id, name). */
PyObject *group_info(PyObject *worker, PyObject *name);         /* _info(name or None) */
PyObject *group_infos(PyObject *worker, PyObject *unused);      /* _infos(): a list */
PyObject *group_view(PyObject *worker, PyObject *unused);       /* _view(): (version, list) */
PyObject *group_wait_version(PyObject *worker, PyObject *args); /* (version, ms) */
PyObject *group_wait_members(PyObject *worker, PyObject *args); /* (n, ms) */
PyObject *group_barrier(PyObject *worker, PyObject *args);      /* (names or None, ms) */
PyObject *group_all_gather(PyObject *worker, PyObject *args);   /* (value, names or None, ms) */

#endif
