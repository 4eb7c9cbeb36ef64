/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - values as the rooms above see them: their marks, the references and objects in them,
 * and the streams on which they are ready. */
#ifndef TENREC_VALUE_VALUE_H
#define TENREC_VALUE_VALUE_H

#include <pthread.h>
#include <stdbool.h>
#include <tenrec/rref.h>
#include <tenrec/types.h>
#include <tenrec/value.h>

#include "core/tensor/device.h"

/* The library's own marks in `flags` of a value. Only values that are being read from a message
 * have marks: values of programs, and values given out to them, have none. */

/* Read from a message, and not yet resolved by transfer_ops.take: u.bytes is a struct rref_fork,
 * u.map an entry of an object's type and its encoded value. */
#define CODEC_UNTAKEN 1u

#define CODEC_DEREF 2u /* a reference that stands for its value */

/* The error of a value that has flags. Returns EINVAL. */
tenrec_status value_refuse_flags(const struct tenrec_value *v, tenrec_error *err);

/* Fails for a value whose memory is NULL though it has bytes or items. Returns TENREC_EINVAL. */
tenrec_status value_refuse_null(const struct tenrec_value *v, tenrec_error *err);

/* Fails for a map whose key `i` is NULL. Returns TENREC_EINVAL. */
tenrec_status value_refuse_key(uint64_t i, tenrec_error *err);

/* Fails for a reference to a region that is NULL, shorter than the struct, or without a name of an
 * owner. Returns TENREC_EINVAL then. */
tenrec_status value_check_region(const struct tenrec_value *v, tenrec_error *err);

/* Drops the tensors of `n` values; frees nothing else. */
void values_finish(const struct tenrec_value *v, size_t n);

/* ---- references: a value shares and drops its handles through their ops ---------------------- */

/* The name of a referenced value, or of a reference to it. Unique in the group and over its
 * sessions: the worker that made the id, and the session and a counter of that worker. One counter
 * serves both kinds. */
struct rref_id {
    int64_t on;
    int64_t local;
};

#define RREF_SESSION_SHIFT 40 /* the counter has the bits below */

static inline bool rref_id_equal(struct rref_id a, struct rref_id b)
{
    return a.on == b.on && a.local == b.local;
}

/* A reference in a message: a value of type RREF on the wire. */
struct rref_fork {
    struct rref_id id, fork;
    tenrec_peer owner, parent; /* the owner of the value, the sender of this fork */
    int64_t version; /* of the sender's view, which has a third worker as the owner; else 0 */
};

struct handle_ops {
    struct tenrec_rref *(*share)(struct tenrec_rref *r);
    void (*drop)(struct tenrec_rref *r); /* not NULL */
};

/* The beginning of each reference. */
struct handle {
    const struct handle_ops *ops;
};

static inline const struct handle_ops *handle_ops_of(struct tenrec_rref *r)
{
    return ((const struct handle *)(const void *)r)->ops;
}

/* Returns true if `v` has references or objects in it. */
bool value_has_handles(const struct tenrec_value *v);

/* ---- object.c: C objects as values ----------------------------------------------------------- */

struct object_type_entry;

/* The types of objects that may arrive. */
struct object_types {
    pthread_mutex_t lock; /* guards the table */
    struct object_type_entry *table;
};

void object_types_init(struct object_types *t);
void object_types_finish(struct object_types *t);

/* Borrows `type`. errors: EINVAL, EEXIST, ENOMEM */
tenrec_status object_types_add(struct object_types *t, const struct tenrec_object_type *type,
                               tenrec_error *err);

/* Makes an object of a received value of type `name`. errors: EUNSUPPORTED (unknown type),
 * and those of decode */
tenrec_status object_decode(struct object_types *t, const char *name,
                            const struct tenrec_value *value, struct tenrec_object **ret,
                            tenrec_error *err);

/* The value that is sent for the object; *ret_type is the name of its type. errors:
 * EUNSUPPORTED, and those of encode */
tenrec_status object_encode(const struct tenrec_object *o, struct tenrec_value **ret,
                            const char **ret_type, tenrec_error *err);

/* ---- stream_value.c: the streams on which a value is ready ------------------------------------
 */

/* Returns true if `v` has tensors on devices. */
bool value_on_devices(const struct tenrec_value *v);

/* Returns the tensors' own streams, on which those of a received message are ready. NULL: no
 * tensor is on a device, or no memory. */
struct streams *value_streams(const struct tenrec_value *v);

/* The same for a value that this thread hands over: streams of the pool that wait for the
 * thread's current streams, and for the tensors' own. *ret NULL: no tensor is on a device.
 * errors: ENOMEM, EUNSUPPORTED, the driver's */
tenrec_status value_hand_over(const struct tenrec_value *v, struct streams **ret,
                              tenrec_error *err);

/* Makes this thread's current streams wait for `ready`, and records them as users of the
 * tensors. `v` may be NULL. */
tenrec_status value_take(const struct tenrec_value *v, struct streams *ready, tenrec_error *err);

/* The same for code that runs on `s` (NULL: this thread's), with all streams of `ready`
 * (NULL: none): an object may use any of them. */
tenrec_status value_take_on(const struct tenrec_value *v, struct streams *ready, struct streams *s,
                            tenrec_error *err);

/* Makes `s`, of a call, wait for this thread's current streams and the streams of `v`. */
tenrec_status value_order(const struct tenrec_value *v, struct streams *s, tenrec_error *err);

/* Makes a set for code that uses a value ready on `ready`: a stream of the pool for each
 * device, further ones on demand. NULL: no memory. */
struct streams *streams_fork(struct streams *ready);

/* Returns true, with the device, if a tensor of `v` is on a device that is not in `device`. */
bool value_strays(const struct tenrec_value *v, const struct tenrec_device *device, size_t n,
                  struct tenrec_device *ret);

#endif
