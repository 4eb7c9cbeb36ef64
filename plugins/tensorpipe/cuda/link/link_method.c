/* SPDX-License-Identifier: Apache-2.0 */
/* link_method.c - the method by which a tensor of a device travels, and its note. */
#include "cuda/import.h"
#include "cuda/link/link_parts.h"
#include "endpoint.h"

#include <string.h>

static tenrec_status lend_xth(struct lent *l, tenrec_error *err)
{
    tenrec_status st = device_event_mark(&l->stream, false, &l->event, err);

    if (st)
        return st;
    l->handover = handover_offer(l->data, l->bytes, l->event);
    if (!l->handover)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a handover");
    l->number = l->handover->number;
    l->note_len = NOTE_SHORT;
    return TENREC_OK;
}

/* Gives the peer a handle to map the memory, and an event behind all writes. */
static tenrec_status lend_ipc(struct lent *l, tenrec_error *err)
{
    const int index = l->stream.device.index;
    const driver_address at = (uintptr_t)l->data;
    struct export e;
    tenrec_status st = device_enter(index, err);

    if (st)
        return st;
    st = device_event_mark(&l->stream, true, &l->event, err);
    if (!st)
        st = export_find(index, at, &e, err);
    device_leave();
    if (!st && at - e.base + l->bytes > e.len)
        st = tenrec_fail(err, TENREC_EINVAL, "cuda:%d: the tensor reaches beyond its allocation",
                         index);
    if (st)
        return st;
    put_le64(l->note + 9, at - e.base);
    put_le64(l->note + 17, e.base);
    put_le64(l->note + 25, e.buffer);
    memcpy(l->note + 33, e.handle.bytes, sizeof e.handle.bytes);
    memcpy(l->note + 97, l->event->handle.bytes, sizeof l->event->handle.bytes);
    l->note_len = NOTE_IPC;
    return TENREC_OK;
}

void lent_in_pieces(struct lent *l)
{
    device_event_give(l->event);
    l->event = NULL;
    l->method = METHOD_BASIC;
    l->note_len = NOTE_SHORT;
}

tenrec_status lent_choose(struct lent *l, const struct tenrec_tensor_desc *t, tenrec_error *err)
{
    const struct link *link = l->pipe->devices.link;
    struct cuda *c = l->pipe->ep->cuda;
    const unsigned methods = c->methods & link->methods;
    const bool both = t->device.kind == TENREC_CUDA && t->target.kind == TENREC_CUDA;

    l->number = l->pipe->devices.link->numbers++;
    if (both && link->same_process && (methods & METHOD_BIT(METHOD_XTH))) {
        l->method = METHOD_XTH;
        return lend_xth(l, err);
    }
    if (both && link->same_host && !link->same_process && (methods & METHOD_BIT(METHOD_IPC)) &&
        !link->refused[t->device.index % DEVICES_MAX]) {
        l->method = METHOD_IPC;
        if (lend_ipc(l, err) == TENREC_OK)
            return TENREC_OK;
        /* Memory of some allocators cannot be shared. */
        endpoint_log(c->ep, TENREC_LOG_DEBUG, "a tensor is staged: %s", err->text);
    }
    if (!(methods & METHOD_BIT(METHOD_BASIC)))
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "no channel that both workers list carries it there; cuda_basic would");
    lent_in_pieces(l);
    return TENREC_OK;
}
