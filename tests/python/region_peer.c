/* SPDX-License-Identifier: Apache-2.0 */
/* region_peer.c - a worker in C for region_test.py, which calls copy(ref) once: it reads the 4
 * bytes of a region, and returns [{ref: the reference to a region of its own with these bytes}]. */
#include <stdio.h>
#include <tenrec/region.h>
#include <tenrec/tenrec.h>

static struct tenrec_tensor *memory;
static struct tenrec_region *region;

static tenrec_status read_region(struct tenrec_worker *w, const struct tenrec_region_ref *from,
                                 tenrec_error *err)
{
    const struct tenrec_bulk e = { .size = sizeof e, .remote = *from, .bytes = 4, .local = memory };
    struct tenrec_future *f;
    tenrec_status st = tenrec_bulk_async(w, &e, 1, NULL, &f, err);

    if (st == TENREC_OK)
        st = tenrec_future_wait(f, TENREC_TIMEOUT_DEFAULT, err);
    tenrec_future_drop(f);
    return st;
}

static tenrec_status copy(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_worker *w = tenrec_call_worker(call);
    const struct tenrec_region_ref *theirs;
    struct tenrec_region_ref own;
    struct tenrec_entry entry = { .key = "ref" };
    struct tenrec_value map, list;
    tenrec_status st = tenrec_call_get_args(call, err, "g", &theirs);

    (void)arg;
    if (st == TENREC_OK)
        st = read_region(w, theirs, err);
    if (st == TENREC_OK)
        st = tenrec_region_new(w, memory, TENREC_REGION_READ, &region, err);
    if (st != TENREC_OK)
        return st;
    tenrec_region_describe(region, &own);
    entry.value = tenrec_value_region(&own);
    map = tenrec_value_map(&entry, 1);
    list = tenrec_value_array(&map, 1);
    return tenrec_call_return(call, &list, err);
}

int main(void)
{
    const int64_t shape[] = { 4 };
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    bool ok =
        tenrec_tensor_new(TENREC_UINT8, 1, shape, &memory, &err) == TENREC_OK &&
        tenrec_worker_new(NULL, &w, &err) == TENREC_OK &&
        tenrec_worker_register_function(w, "copy", copy, NULL, TENREC_POOL, &err) == TENREC_OK &&
        tenrec_init_rpc(w, &err) == TENREC_OK &&
        tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, &err) == TENREC_OK;

    if (!ok)
        fprintf(stderr, "region_peer: %s\n", err.text);
    tenrec_region_drop(region);
    tenrec_worker_drop(w);
    tenrec_tensor_drop(memory);
    return !ok;
}
