/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - the base of tenrec.Worker. */
#ifndef PYTHON_WORKER_H
#define PYTHON_WORKER_H

#include "python.h"
#include "value.h"

#include <stdbool.h>
#include <tenrec/rpc.h>

bool worker_add_type(PyObject *module);

/* The worker of a tenrec.Worker, borrowed from it; NULL with an exception before Worker.__init__,
 * and in a child of the process that opened it. */
struct tenrec_worker *worker_of(PyObject *self);

/* Returns true unless this process is a child of the process that opened the worker: then its
 * handles are left alone, as a lock may have been held at the fork. */
bool worker_is_own(const PyObject *self);

/* call.c: calls of other workers: methods of tenrec_rpc._core.Worker. */

/* What a call needs, from the arguments (..., function, args, ms) of a method, and a further one
 * for the memory of the result. Finish it, also after a failure, which returns false with an
 * exception. */
struct call {
    const char *to; /* NULL in a call of a reference */
    const char *function;
    struct values args;
    struct tenrec_call_options options;
    PyObject *into; /* a tenrec.Tensor for the result, or NULL */
};

bool call_read_of_rref(struct call *c, PyObject *args);
void call_finish(struct call *c);

/* What a call returns: its result, or its future. st: the status of the start of `f`, which is
 * taken. */
typedef PyObject *call_end_fn(tenrec_status st, struct tenrec_future *f, const tenrec_error *err,
                              PyObject *worker);
call_end_fn call_result, call_future;

/* _call(to, function, args, ms[, into]), _call_async likewise; _call_one_way and _remote without
 * `into`; _rref(value) */
PyObject *call_one_way(PyObject *worker, PyObject *args);
PyObject *call_sync(PyObject *worker, PyObject *args);
PyObject *call_async(PyObject *worker, PyObject *args);
PyObject *call_remote(PyObject *worker, PyObject *args);
PyObject *call_rref(PyObject *worker, PyObject *value);

/* callback.c: Python functions that run on changes of the group. */

/* The callbacks of one worker, each NULL or shared; with the GIL. */
struct callbacks {
    PyObject *joined, *left, *lost;
};

/* The methods Worker._on_members(joined, left) and Worker._on_peer_lost(lost). */
PyObject *callback_on_members(PyObject *worker, PyObject *args);
PyObject *callback_on_peer_lost(PyObject *worker, PyObject *lost);

int callbacks_traverse(struct callbacks *c, visitproc visit, void *arg);
void callbacks_clear(struct callbacks *c);

/* function.c: Python functions that other workers call. */

/* The functions of one worker; with the GIL. */
struct functions {
    struct function *first;
};

/* The method Worker._register(name, function, later): with `later` the function is start(answer,
 * args), and returns before the call has an answer. */
PyObject *function_register(PyObject *worker, PyObject *args);
/* Keeps the result as tenrec_call_return does. errors: its own, and those of values */
tenrec_status function_return(struct tenrec_call *call, PyObject *result, tenrec_error *err);

/* answer.c: answers that are given later. */
bool answer_add_type(PyObject *module);
PyObject *answer_new(struct tenrec_call *call, PyObject *worker);
/* The call is answered otherwise; returns false if it has been by `answer`. */
bool answer_forget(PyObject *answer);

int functions_traverse(struct functions *f, visitproc visit, void *arg);

/* Frees them; none runs, and none will. */
void functions_clear(struct functions *f);

/* worker.c: the object itself. */

struct worker {
    PyObject_HEAD
    struct tenrec_worker *w;
    struct functions functions;
    struct callbacks callbacks;
    PyObject *as_tensor; /* NULL: none */
    unsigned forks;      /* forked_count of the process that opened it, which alone may use it */
    bool abandoned;      /* a function still ran when the worker was stopped: it is never freed */
};

/* Its state; the same errors as worker_of. */
struct worker *worker_checked(PyObject *self);

/* group.c: the members of the group: methods of tenrec_rpc._core.Worker. */

/* A member is (id, name). */
PyObject *group_info(PyObject *worker, PyObject *name);         /* _info(name or None) */
PyObject *group_infos(PyObject *worker, PyObject *unused);      /* _infos(): a list */
PyObject *group_view(PyObject *worker, PyObject *unused);       /* _view(): (version, list) */
PyObject *group_wait_version(PyObject *worker, PyObject *args); /* (version, ms) */
PyObject *group_wait_members(PyObject *worker, PyObject *args); /* (n, ms) */
PyObject *group_barrier(PyObject *worker, PyObject *args);      /* (names or None, ms) */
PyObject *group_all_gather(PyObject *worker, PyObject *args);   /* (value, names or None, ms) */

#endif
