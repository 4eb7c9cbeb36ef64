/* SPDX-License-Identifier: Apache-2.0 */
/* membership_request.c - the two functions of torch that its workers call on each member when one
 * of them joins or leaves. */
#include "core/base/clock.h"
#include "torch/member/torch_request.h"
#include "torch/member/worker_list.h"

#include <stdlib.h>
#include <string.h>

enum { STORE_MS = 5000 };

/* The answer to _get_device_infos: no devices, no device maps. */
static tenrec_status answer_no_devices(struct tenrec_torch_request *r, tenrec_error *err)
{
    struct pickler p = { .jit = false };

    pickler_begin(&p);
    pickler_int(&p, 0);
    pickler_op(&p, '}');
    pickler_op(&p, ']');
    bytes_add_u8(&p.out, 0x87); /* a tuple of three */
    pickler_end(&p);
    return pickler_message(&p, TENREC_MSG_RET, &r->reply, err);
}

/* A worker joins that the list has under that id: a stranger's claim is checked against it. */
static tenrec_status worker_joins(struct tenrec_torch_member *m, const char *name, tenrec_peer id,
                                  tenrec_error *err)
{
    char *address = NULL;
    tenrec_status st =
        worker_list_address(m->keys, name, id, clock_deadline_ms(STORE_MS), &address, err);

    if (st == TENREC_OK && !address)
        st = tenrec_fail(err, TENREC_EGROUP, "the group's store has no worker '%s' with id %d",
                         name, (int)id);
    if (st == TENREC_OK)
        st = torch_peers_join(m, name, id, address, err);
    free(address);
    return st;
}

/* _update_group_membership(WorkerInfo(name, id), devices, device maps, is_join) */
static tenrec_status update_membership(struct tenrec_torch_request *r,
                                       const struct request_call *call, tenrec_error *err)
{
    const struct pyobject *worker = call->n == 4 ? call->arg[0] : NULL;
    char name[TENREC_NAME_MAX + 1];
    const struct bytes_slice *text;

    if (!worker || !pyobject_is(worker, PY_RPC, "WorkerInfo", 2) ||
        worker->u.item[1]->kind != PY_TEXT || worker->u.item[2]->kind != PY_INT ||
        call->arg[3]->kind != PY_BOOL)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "_update_group_membership: expected a WorkerInfo, two more and a bool");
    text = &worker->u.item[1]->u.text;
    if (text->len == 0 || text->len > TENREC_NAME_MAX || worker->u.item[2]->u.integer < 0 ||
        worker->u.item[2]->u.integer > INT16_MAX)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "_update_group_membership: a worker's name or id is out of range");
    memcpy(name, text->data, text->len);
    name[text->len] = '\0';
    if (call->arg[3]->u.boolean)
        return worker_joins(r->member, name, (tenrec_peer)worker->u.item[2]->u.integer, err);
    torch_peers_leave(r->member, name);
    return TENREC_OK;
}

tenrec_status membership_request(struct tenrec_torch_request *r, const struct request_call *call,
                                 bool *ret_known, tenrec_error *err)
{
    *ret_known = true;
    if (strcmp(r->name, "torch.distributed.rpc.backend_registry._get_device_infos") == 0)
        return answer_no_devices(r, err);
    if (strcmp(r->name, "torch.distributed.rpc._utils._update_group_membership") == 0)
        return update_membership(r, call, err);
    *ret_known = false;
    return TENREC_OK;
}
