/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h - a worker's devices, and the target devices of its tensors at other workers.
 *
 * Where no member of a static group names a device, `devices` is NULL. A dynamic group always has
 * it, as a member with devices may join. */
#ifndef TENREC_DEVICES_DEVICES_H
#define TENREC_DEVICES_DEVICES_H

#include "core/tensor/device.h"
#include "group/store/store.h"

#include <tenrec/rpc.h>

struct chain;
struct config_settings;
struct devices;
struct membership;
struct store_value;

/* From the configuration; *ret is NULL if that names no devices. errors: ENOMEM */
tenrec_status devices_new(const struct config_settings *s, struct devices **ret, tenrec_error *err);
/* Without devices. Returns NULL if out of memory. */
struct devices *devices_make(void);
void devices_free(struct devices *d); /* NULL is fine */

/* ---- init, in this order ------------------------------------------------------ */

/* Encodes the worker's devices for the other members; the caller frees ret->data, which is NULL for
 * a worker that uses none. Else asks the chain for their number. */
tenrec_status devices_tell(struct devices *d, struct chain *chain, struct store_value *ret,
                           tenrec_error *err);

/* Checks the devices of all members, with the same result at each, and prepares the devices in use.
 * errors: EGROUP, EPROTOCOL, ENOMEM, the store's, the backend's */
tenrec_status devices_agree(struct tenrec_worker *w, struct membership *group, uint64_t deadline_ns,
                            tenrec_error *err);

/* A member of a dynamic group joined or left. Its maps apply from then on; an invalid map is logged
 * and fails the messages. */
void devices_joined(struct tenrec_worker *w, tenrec_peer id, const char *name, const void *extra,
                    size_t len);
void devices_left(struct tenrec_worker *w, tenrec_peer id);

/* Forgets the other members, at shutdown. */
void devices_forget(struct devices *d);

/* ---- device_record.c: the devices of a worker in its record ------------------- */

/* Sets ret->data to NULL if out of memory. */
void device_record_pack(const struct device_row *r, struct store_value *ret);

/* An empty record is of a worker that names no devices.
 *
 * ret      the caller frees it with device_row_free
 * errors   EPROTOCOL, ENOMEM */
tenrec_status device_record_unpack(const void *data, size_t len, struct device_row *ret,
                                   tenrec_error *err);

#endif
