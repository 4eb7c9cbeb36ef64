/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h - a worker's devices, and where its tensors go at others.
 *
 * A worker of whose static group no member names a device has none of this: `devices`
 * is NULL. In a group that changes a member with devices may join. */
#ifndef TENREC_MEMBERSHIP_DEVICES_H
#define TENREC_MEMBERSHIP_DEVICES_H

#include <tenrec/rpc.h>

struct chain;
struct config_settings;
struct devices;
struct store_value;

/* From the configuration; *ret NULL: it names none. errors: ENOMEM */
tenrec_status devices_new(const struct config_settings *s, struct devices **ret, tenrec_error *err);
/* Without any device yet; NULL: no memory. */
struct devices *devices_make(void);
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

#endif
