/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/import.h"

#include <pthread.h>

#define EXPORTS 64 /* allocations of which a handle is kept; a power of two */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct export exports[EXPORTS]; /* under lock; each at its number */

static bool export_take(uint64_t buffer, struct export *ret)
{
    pthread_mutex_lock(&lock);
    *ret = exports[buffer % EXPORTS];
    pthread_mutex_unlock(&lock);
    return buffer && ret->buffer == buffer;
}

static void export_keep(const struct export *e)
{
    pthread_mutex_lock(&lock);
    exports[e->buffer % EXPORTS] = *e;
    pthread_mutex_unlock(&lock);
}

tenrec_status export_find(int index, driver_address at, struct export *ret, tenrec_error *err)
{
    uint64_t buffer = 0;
    size_t len = 0;
    tenrec_status st = DRIVER(pointer_attribute, index, err, &buffer, DRIVER_BUFFER_ID, at);

    if (st || export_take(buffer, ret))
        return st;
    *ret = (struct export){ .buffer = buffer };
    st = DRIVER(memory_range, index, err, &ret->base, &len, at);
    if (!st)
        st = DRIVER(ipc_memory, index, err, &ret->handle, ret->base);
    if (st)
        return st;
    ret->len = len;
    export_keep(ret);
    return TENREC_OK;
}
