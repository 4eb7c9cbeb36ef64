/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - devices: streams and the current ones of a thread, tensors in memory of devices, and
 * the maps between the devices of workers.
 *
 * The device ops of a backend belong to the process, not to a worker: tensors and futures
 * outlive workers. A process without such a backend pays nothing. */
#ifndef TENREC_TENSOR_DEVICE_H
#define TENREC_TENSOR_DEVICE_H

#include "core/base/threads.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <tenrec/agent.h>
#include <tenrec/device.h>

#define STREAMS_MAX 32

/* At most one stream for each device. Shared (counted). */
struct streams {
    atomic_uint refs;
    struct spinlock lock; /* guards the fields below */
    uint32_t n;
    bool fresh; /* a new device gets a stream of the pool, else the default stream */
    struct tenrec_stream stream[STREAMS_MAX];
};

extern _Atomic(const struct tenrec_device_ops *) stream_ops_of_process;

/* The current streams of the calling thread: its own, or those of the call that it serves; NULL:
 * the default streams. */
extern _Thread_local struct streams *thread_streams STATIC_TLS;

/* The device ops of the process; NULL without a backend with devices. */
static inline const struct tenrec_device_ops *stream_ops(void)
{
    return atomic_load_explicit(&stream_ops_of_process, memory_order_acquire);
}

/* Sets the device ops; the first call counts. errors: EPLUGIN (a function is missing) */
tenrec_status stream_ops_set(const struct tenrec_device_ops *ops, tenrec_error *err);

/* errors: EUNSUPPORTED, naming the device */
tenrec_status stream_ops_for(struct tenrec_device device, const struct tenrec_device_ops **ret,
                             tenrec_error *err);

/* NULL: no memory. */
struct streams *streams_new(bool fresh);
struct streams *streams_share(struct streams *s); /* NULL is fine, */
void streams_drop(struct streams *s);             /* here too */

/* Returns the stream for `device`; `s` may be NULL. errors: EUNSUPPORTED, the driver's */
tenrec_status streams_get(struct streams *s, struct tenrec_device device, struct tenrec_stream *ret,
                          tenrec_error *err);
bool streams_has(struct streams *s, struct tenrec_device device, struct tenrec_stream *ret);
/* errors: ETOOBIG */
tenrec_status streams_put(struct streams *s, const struct tenrec_stream *stream, tenrec_error *err);

static inline bool stream_equal(const struct tenrec_stream *a, const struct tenrec_stream *b)
{
    return a->device.kind == b->device.kind && a->device.index == b->device.index &&
           a->stream == b->stream;
}

/* Makes each stream of `then` (NULL: this thread's current streams) wait for that of `first` on
 * the same device. `first` may be NULL. */
tenrec_status streams_order(struct streams *first, struct streams *then, tenrec_error *err);

/* Returns a stream of the pool that waits for `first`, on the same device. */
tenrec_status stream_after(const struct tenrec_stream *first, struct tenrec_stream *ret,
                           tenrec_error *err);

/* Tensors in memory of a backend's devices. */

/* Makes a tensor for `desc` in memory of s->device, to be written on `s`, a stream of the
 * pool; desc->data and desc->device are ignored. errors: as tensor_for_desc,
 * EUNSUPPORTED */
tenrec_status device_tensor_for_desc(const struct tenrec_tensor_desc *desc,
                                     const struct tenrec_stream *s, struct tenrec_tensor **ret,
                                     tenrec_error *err);

/* The same on `device`, to be used on the thread's current stream there. */
tenrec_status device_tensor_new(const struct tenrec_tensor_desc *desc, struct tenrec_device device,
                                struct tenrec_tensor **ret, tenrec_error *err);

/* Returns a view of `t`, on a device, whose storage is its contiguous bytes alone; or `t`
 * itself if that would need a copy. errors: ENOMEM */
tenrec_status device_tensor_to_send(struct tenrec_tensor *t, struct tenrec_tensor **ret,
                                    tenrec_error *err);

/* Returns a view of `t` that is written, and ready, on `s`; shares t. errors: ENOMEM */
tenrec_status device_tensor_on(struct tenrec_tensor *t, const struct tenrec_stream *s,
                               struct tenrec_tensor **ret, tenrec_error *err);

/* Copies on the stream of `to` (device_tensor_on), after `from` is ready on `ready` (may
 * be NULL), and makes `ready` wait for the copy. Both tensors are on devices. */
tenrec_status device_tensor_copy(struct tenrec_tensor *from, struct tenrec_tensor *to,
                                 struct streams *ready, tenrec_error *err);

/* Makes `to` wait for the elements of `t`. Does nothing for a tensor in the host. */
tenrec_status device_tensor_order(const struct tenrec_tensor *t, const struct tenrec_stream *to,
                                  tenrec_error *err);

/* The mapping of the devices of one worker to those of another.
 *
 * Each worker publishes its devices, those of them in use, and its maps to other workers'
 * devices. Every worker checks the table of all, so that all fail with the same text, or
 * none. Pure functions: no device is accessed. */

#define DEVICE_TEXT_MAX 24
#define DEVICE_COUNT_UNKNOWN (-1)

/* One entry of `worker.device_maps`. */
struct device_map {
    char *worker;                    /* owns; the callee's name */
    struct tenrec_device_pair *pair; /* owns; from the caller's devices to the callee's */
    size_t n;
};

/* The devices of one worker. An empty row with an unknown count uses no device. */
struct device_row {
    const char *name;             /* of the worker, in the table of all; borrowed */
    int64_t count;                /* of its devices; DEVICE_COUNT_UNKNOWN */
    struct tenrec_device *device; /* owns; as configured, none: deduced */
    size_t n_devices;
    struct device_map *map; /* owns */
    size_t n_maps;
};

void device_row_free(struct device_row *r); /* leaves it zeroed */

/* Returns true if the row names no device. */
bool device_row_is_empty(const struct device_row *r);

/* Copies the pairs; an equal pair is not added twice.
 *
 * errors   EINVAL (another target for the same device), ENOMEM */
tenrec_status device_row_add(struct device_row *r, const char *worker,
                             const struct tenrec_device_pair *pair, size_t n, tenrec_error *err);
tenrec_status device_row_set_devices(struct device_row *r, const struct tenrec_device *device,
                                     size_t n, tenrec_error *err);

/* Returns NULL without such a map. */
const struct device_map *device_row_map(const struct device_row *r, const char *worker);
/* Finds the target of `from`. Returns false without a target. `m` may be NULL: an empty map. */
bool device_map_find(const struct device_map *m, struct tenrec_device from,
                     struct tenrec_device *ret);

/* Checks that all devices exist and all maps fit. All workers report the same worker, and its first
 * mistake.
 *
 * all      the rows are complete: every name in a map must be in them
 * errors   EGROUP (names the worker, and the correction) */
tenrec_status device_table_check(const struct device_row *row, size_t n, bool all,
                                 tenrec_error *err);

/* Returns true if worker `i` must count its devices before the table can be checked. */
bool device_table_wants_count(const struct device_row *row, size_t n, size_t i);

/* Copies the pairs of `m` (NULL: an empty map), for answers with their ends `reversed`. The copy
 * names no worker. errors: ENOMEM */
tenrec_status device_map_copy(const struct device_map *m, bool reversed, struct device_map *ret,
                              tenrec_error *err);
void device_map_free(struct device_map *m);

/* Lists the devices that worker `i` uses: the configured ones, else all in its maps and in the
 * maps of others to it; without the host, by index. The caller frees *ret. errors: ENOMEM */
tenrec_status device_table_list(const struct device_row *row, size_t n, size_t i,
                                struct tenrec_device **ret, size_t *ret_n, tenrec_error *err);

/* Returns true if `d` is one of the `n` devices. */
bool device_listed(const struct tenrec_device *device, size_t n, struct tenrec_device d);

/* "cuda:0, cuda:1"; in `buf`, cut to `room`. */
const char *device_list_text(const struct tenrec_device *device, size_t n, char *buf, size_t room);

/* "cpu", "cuda:0"; in `buf`. */
const char *device_text(struct tenrec_device d, char buf[DEVICE_TEXT_MAX]);

static inline bool device_equal(struct tenrec_device a, struct tenrec_device b)
{
    return a.kind == b.kind && a.index == b.index;
}

#endif
