/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/devices/devices.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "group/store/bytes.h"

/* Magic, then numbers as u64 and names as blobs, little-endian. A later version appends its fields,
 * which this one ignores. */
#define MAGIC 0x31445254u /* "TRD1" */

enum { DEVICES_MAX = 1024, MAPS_MAX = 32768 };

static void add_device(struct bytes *b, struct tenrec_device d)
{
    bytes_add_u32(b, (uint32_t)d.kind);
    bytes_add_u32(b, (uint32_t)d.index);
}

void device_record_pack(const struct device_row *r, struct store_value *ret)
{
    struct bytes b = { 0 };

    bytes_add_u32(&b, MAGIC);
    bytes_add_u64(&b, (uint64_t)r->count);
    bytes_add_u64(&b, r->n_devices);
    for (size_t i = 0; i < r->n_devices; i++)
        add_device(&b, r->device[i]);
    bytes_add_u64(&b, r->n_maps);
    for (size_t i = 0; i < r->n_maps; i++) {
        bytes_add_text(&b, r->map[i].worker);
        bytes_add_u64(&b, r->map[i].n);
        for (size_t k = 0; k < r->map[i].n; k++) {
            add_device(&b, r->map[i].pair[k].from);
            add_device(&b, r->map[i].pair[k].to);
        }
    }
    if (b.failed)
        bytes_free(&b);
    ret->data = b.data;
    ret->len = b.len;
}

static struct tenrec_device read_device(struct bytes_reader *r)
{
    const int32_t kind = (int32_t)bytes_read_u32(r);

    return (struct tenrec_device){ kind, (int32_t)bytes_read_u32(r) };
}

static tenrec_status read_devices(struct bytes_reader *r, struct device_row *ret, tenrec_error *err)
{
    size_t n = bytes_read_count(r, DEVICES_MAX, 8);

    if (n == 0)
        return TENREC_OK;
    ret->device = memory_new(n, sizeof *ret->device);
    if (!ret->device)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the devices of a worker");
    for (; ret->n_devices < n; ret->n_devices++)
        ret->device[ret->n_devices] = read_device(r);
    return TENREC_OK;
}

static tenrec_status read_map(struct bytes_reader *r, struct device_row *ret, tenrec_error *err)
{
    struct tenrec_device_pair pair;
    char worker[TENREC_NAME_MAX + 1];
    tenrec_status st;
    size_t n;

    bytes_read_text(r, worker, sizeof worker);
    if (!*worker) {
        r->bad = true;
        return TENREC_OK;
    }
    n = bytes_read_count(r, DEVICES_MAX, 16);
    st = device_row_add(ret, worker, NULL, 0, err);
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        pair.from = read_device(r);
        pair.to = read_device(r);
        st = device_row_add(ret, worker, &pair, 1, err);
    }
    return st;
}

tenrec_status device_record_unpack(const void *data, size_t len, struct device_row *ret,
                                   tenrec_error *err)
{
    struct bytes_reader r = { .data = data, .len = len };
    tenrec_status st;
    size_t n;

    *ret = (struct device_row){ .count = DEVICE_COUNT_UNKNOWN };
    if (len == 0)
        return TENREC_OK;
    if (bytes_read_u32(&r) != MAGIC)
        return tenrec_fail(err, TENREC_EPROTOCOL, "not tenrec's record of devices");
    ret->count = (int64_t)bytes_read_u64(&r);
    st = read_devices(&r, ret, err);
    n = st == TENREC_OK ? bytes_read_count(&r, MAPS_MAX, 16) : 0;
    for (size_t i = 0; i < n && st == TENREC_OK && !r.bad; i++)
        st = read_map(&r, ret, err);
    if (st == TENREC_EINVAL || (st == TENREC_OK && (r.bad || ret->count < DEVICE_COUNT_UNKNOWN)))
        st = tenrec_fail(err, TENREC_EPROTOCOL, "malformed record of devices");
    if (st != TENREC_OK)
        device_row_free(ret);
    return st;
}
