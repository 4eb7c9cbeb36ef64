/* SPDX-License-Identifier: Apache-2.0 */
#include "group/device_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "group/bytes.h"

/* Magic, then numbers as u64 and names as blobs, little-endian. What a later
 * version adds stands behind and is not looked at. */
#define MAGIC 0x31445254u /* "TRD1" */

enum { DEVICES_MAX = 1024, MAPS_MAX = 32768 };

struct reader {
    const uint8_t *data;
    size_t len, at;
    bool bad;
};

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

static const uint8_t *take(struct reader *r, size_t n)
{
    if (r->bad || r->len - r->at < n) {
        r->bad = true;
        return NULL;
    }
    r->at += n;
    return r->data + r->at - n;
}

static uint64_t read_number(struct reader *r)
{
    const uint8_t *p = take(r, 8);

    return p ? bytes_get_u64(p) : 0;
}

static struct tenrec_device read_device(struct reader *r)
{
    const uint8_t *p = take(r, 8);

    return p ? (struct tenrec_device){ (int32_t)bytes_get_u32(p), (int32_t)bytes_get_u32(p + 4) }
             : (struct tenrec_device){ 0 };
}

/* A number of things of at least `size` bytes each. */
static size_t read_count(struct reader *r, size_t most, size_t size)
{
    uint64_t n = read_number(r);

    if (n > most || n > (r->len - r->at) / size) {
        r->bad = true;
        return 0;
    }
    return (size_t)n;
}

static tenrec_status no_memory(tenrec_error *err)
{
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for the devices of a worker");
}

static tenrec_status read_devices(struct reader *r, struct device_row *ret, tenrec_error *err)
{
    size_t n = read_count(r, DEVICES_MAX, 8);

    if (n == 0)
        return TENREC_OK;
    ret->device = memory_new(n, sizeof *ret->device);
    if (!ret->device)
        return no_memory(err);
    for (; ret->n_devices < n; ret->n_devices++)
        ret->device[ret->n_devices] = read_device(r);
    return TENREC_OK;
}

static tenrec_status read_map(struct reader *r, struct device_row *ret, tenrec_error *err)
{
    size_t len = read_count(r, TENREC_NAME_MAX, 1), n;
    const uint8_t *name = take(r, len);
    struct device_pair pair;
    char worker[TENREC_NAME_MAX + 1];
    tenrec_status st = TENREC_OK;

    if (r->bad || len == 0 || memchr(name, 0, len)) {
        r->bad = true;
        return TENREC_OK;
    }
    memcpy(worker, name, len);
    worker[len] = '\0';
    n = read_count(r, DEVICES_MAX, 16);
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
    struct reader r = { .data = data, .len = len };
    const uint8_t *magic;
    tenrec_status st;
    size_t n;

    *ret = (struct device_row){ .count = DEVICE_COUNT_UNKNOWN };
    if (len == 0)
        return TENREC_OK;
    magic = take(&r, 4);
    if (!magic || bytes_get_u32(magic) != MAGIC)
        return tenrec_fail(err, TENREC_EPROTOCOL, "record of devices is none of tenrec's");
    ret->count = (int64_t)read_number(&r);
    st = read_devices(&r, ret, err);
    n = st == TENREC_OK ? read_count(&r, MAPS_MAX, 16) : 0;
    for (size_t i = 0; i < n && st == TENREC_OK && !r.bad; i++)
        st = read_map(&r, ret, err);
    if (st == TENREC_EINVAL || (st == TENREC_OK && (r.bad || ret->count < DEVICE_COUNT_UNKNOWN)))
        st = tenrec_fail(err, TENREC_EPROTOCOL, "record of devices makes no sense");
    if (st != TENREC_OK)
        device_row_free(ret);
    return st;
}
