/* SPDX-License-Identifier: Apache-2.0 */
/* device_map.h - the mapping of the devices of one worker to those of another.
 *
 * Each worker publishes its devices, those of them in use, and its maps to other workers'
 * devices. Every worker checks the table of all, so that all fail with the same text, or
 * none. Pure functions: no device is accessed. */
#ifndef TENREC_TENSOR_DEVICE_MAP_H
#define TENREC_TENSOR_DEVICE_MAP_H

#include <stdbool.h>
#include <tenrec/device.h>

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
