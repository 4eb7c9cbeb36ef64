/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h - a worker's devices, and where its tensors go at others.
 *
 * A worker of whose static group nobody names a device has none of this: `devices`
 * is NULL. In a group that changes somebody may come who does. Without devices in its
 * maps a message pays nothing for it in either. */
#ifndef TENREC_RPC_DEVICES_H
#define TENREC_RPC_DEVICES_H

#include <tenrec/rpc.h>

#include "group/device_map.h"
#include "rpc/stream.h"

struct chain;
struct config_settings;
struct devices;
struct store_value;

/* From the configuration; *ret NULL: it names none. errors: ENOMEM */
tenrec_status devices_new(const struct config_settings *s, struct devices **ret, tenrec_error *err);
void devices_free(struct devices *d); /* NULL is fine */

/* ---- init, in this order ------------------------------------------------------ */

/* What the others have to know, to be freed; ret->data NULL: nothing. Asks the
 * chain what there is when the worker uses devices. */
tenrec_status devices_tell(struct devices *d, struct chain *chain, struct store_value *ret,
                           tenrec_error *err);

/* The others have told. Checks all of it, with the same outcome everywhere, and
 * makes ready what is used. May make *d. errors: EGROUP, EPROTOCOL, ENOMEM, the
 * store's, the backend's */
tenrec_status devices_agree(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

/* A member of a dynamic group came or went. Its maps count from then on; what is
 * wrong with them is in the log, and fails the messages. */
void devices_joined(struct tenrec_worker *w, tenrec_peer id, const char *name, const void *extra,
                    size_t len);
void devices_left(struct tenrec_worker *w, tenrec_peer id);

/* The end of a life: forgets the others. */
void devices_forget(struct devices *d);

/* ---- messages -------------------------------------------------------------------- */

/* Says where the tensors of a request go, and orders them after what this thread
 * has queued. errors: EDEVICE, EUNSUPPORTED, the driver's */
tenrec_status devices_request(struct tenrec_worker *w, tenrec_peer to, const char *function,
                              struct tenrec_msg *msg, tenrec_error *err);

/* The same for an answer, whose tensors are ready on `s` (NULL: by themselves). */
tenrec_status devices_answer(struct tenrec_worker *w, tenrec_peer to, struct streams *s,
                             struct tenrec_msg *msg, tenrec_error *err);

/* Has the message a tensor for a device? Of one that came, or goes. */
static inline bool devices_in(const struct tenrec_msg *msg)
{
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (tenrec_msg_tensor(msg, i)->device.kind != TENREC_CPU)
            return true;
    return false;
}

/* One that came shall be at `target`: may it be? errors: EDEVICE */
tenrec_status devices_check_target(struct tenrec_worker *w, struct tenrec_device target,
                                   tenrec_error *err);

/* The streams that a call with this request runs on; NULL: the worker uses no
 * devices (or there is no memory: then the default ones). */
struct streams *devices_call_streams(struct tenrec_worker *w, const struct tenrec_msg *request);

#endif
