/* SPDX-License-Identifier: Apache-2.0 */
/* torch_request.h - a call of a torch worker while it is served. */
#ifndef TENREC_TORCH_MEMBER_TORCH_REQUEST_H
#define TENREC_TORCH_MEMBER_TORCH_REQUEST_H

#include "future/pool.h"
#include "torch_member/member.h"
#include "torch_member/pyobject.h"
#include "torch_member/reply.h"

struct tenrec_torch_request {
    struct pool_task task;
    struct tenrec_torch_member *member;
    tenrec_peer from;
    struct tenrec_msg *msg; /* owns */
    struct arena arena;     /* has the objects and the values */
    struct message_tensors tensors;
    const struct tenrec_value *args;
    size_t n_args;
    struct tenrec_msg *reply; /* owns; NULL: None, so far */
};

/* What a request calls. */
struct request_call {
    struct bytes_span module, name; /* module.data is NULL in a TorchScript call */
    struct pyobject *const *arg;
    uint32_t n;
};

/* Serves the functions with which torch's workers keep their group. *ret_known: `name` is one of
 * them. */
tenrec_status membership_request(struct tenrec_torch_request *r, const char *name,
                                 const struct request_call *call, bool *ret_known,
                                 tenrec_error *err);

#endif
