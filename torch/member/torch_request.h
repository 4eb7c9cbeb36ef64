/* SPDX-License-Identifier: Apache-2.0 */
/* torch_request.h - a call of a torch worker while it is served: request_read.c reads it,
 * torch_requests.c runs its function, request_method.c finds methods of referenced objects. */
#ifndef TENREC_MEMBER_TORCH_REQUEST_H
#define TENREC_MEMBER_TORCH_REQUEST_H

#include "rpc/future/pool.h"
#include "torch/member/member.h"
#include "torch/member/pyobject.h"
#include "torch/member/references.h"
#include "torch/member/reply.h"

struct torch_function {
    struct torch_function *next;
    tenrec_torch_function_fn *fn;
    void *arg;
    char name[]; /* NUL terminated */
};

/* A reference in the arguments that is not confirmed yet, or whose value is not made. */
struct request_waiter {
    struct rref_waiter waiter; /* first */
    struct tenrec_torch_request *request;
};

struct tenrec_torch_request {
    struct pool_task task;
    struct tenrec_torch_member *member;
    tenrec_peer from;
    struct tenrec_msg *msg; /* owns */
    struct arena arena;     /* has the objects and the values */
    struct message_tensors tensors;
    const char *name; /* of the function */
    const struct tenrec_value *args;
    size_t n_args;
    struct tenrec_msg *reply; /* owns; NULL: None, so far */
    struct outgoing reply_refs;

    struct arrivals refs; /* in the arguments */
    struct request_waiter *waiter;
    uint64_t waiting_bytes; /* counted in the member's */
    atomic_size_t left;     /* waiters, and the thread that starts them */
    atomic_flag failed;
    tenrec_error why; /* written by the thread that set failed */

    struct rref_owner *made; /* held; NULL: not a creation */
    struct rref_id made_fork;
    struct tenrec_value *kept; /* owns; the value that is made */
};

/* What a request calls. */
struct request_call {
    struct bytes_slice module, name; /* module.data is NULL in a TorchScript call */
    struct pyobject *const *arg;
    uint32_t n;
    bool keywords;
};

/* Is the request of torch's C++ functions: an operator or a TorchScript function? */
static inline bool request_is_script(const struct tenrec_torch_request *r)
{
    return r->msg->type == TENREC_MSG_SCRIPT_CALL || r->msg->type == TENREC_MSG_SCRIPT_REMOTE_CALL;
}

/* Reads the call, and begins the creation if it is one: `r->made` is set then, also after an error.
 *
 * errors   EPROTOCOL, EUNSUPPORTED, ECANCELED and EEXIST (of a creation), ENOMEM */
tenrec_status request_read(struct tenrec_torch_request *r, struct request_call *ret,
                           tenrec_error *err);

/* Serves the functions with which torch's workers keep their group. *ret_known: r->name is one of
 * them. */
tenrec_status membership_request(struct tenrec_torch_request *r, const struct request_call *call,
                                 bool *ret_known, tenrec_error *err);

/* Serves torch's request for the type of a referenced value, and finds the method that it calls on
 * one: r->name and r->args are the method's then. *ret_known: the answer is made. */
tenrec_status method_request(struct tenrec_torch_request *r, bool *ret_known, tenrec_error *err);

/* ---- torch_functions.c ---- */

/* The function of that name; of an operator also by its name without arguments. errors: ENOFUNCTION
 */
tenrec_status torch_functions_get(struct tenrec_torch_member *m, const char *name,
                                  const struct torch_function **ret, tenrec_error *err);
/* Has a function of the name "class_name.method" been registered? */
bool torch_functions_has_methods(struct tenrec_torch_member *m, const char *class_name);

#endif
