/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - libcuda, when there is one. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libcuda.so.1" /* the driver's; the Toolkit has nothing to do with it */

static struct {
    pthread_once_t once;
    tenrec_status status;
    tenrec_error why; /* not OK */
    struct driver calls;
} state = { .once = PTHREAD_ONCE_INIT };

static const struct {
    const char *symbol;
    size_t offset; /* in struct driver */
} table[] = {
#define ENTRY(name, symbol, parameters) { #symbol, offsetof(struct driver, name) },
    DRIVER_CALLS(ENTRY)
#undef ENTRY
};

const char *driver_symbol(size_t offset)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].offset == offset)
            return table[i].symbol;
    return "?";
}

const struct driver *driver(void)
{
    return &state.calls;
}

tenrec_status driver_check(driver_result r, const char *call, int index, tenrec_error *err)
{
    const char *name = NULL, *text = NULL;
    char device[32] = "";

    if (r == DRIVER_SUCCESS)
        return TENREC_OK;
    if (index >= 0)
        snprintf(device, sizeof device, " for cuda:%d", index);
    state.calls.error_name(r, &name);
    state.calls.error_text(r, &text);
    return tenrec_fail(err, r == DRIVER_OUT_OF_MEMORY ? TENREC_ENOMEM : TENREC_EOS, "%s%s: %s (%s)",
                       call, device, name ? name : "unknown error",
                       text ? text : "the driver has no text for it");
}

/* As POSIX wants it: a pointer to data is copied to one to a function. */
static bool look_up(void *library)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        void *found = dlsym(library, table[i].symbol);

        if (!found) {
            state.status = tenrec_fail(&state.why, TENREC_EUNSUPPORTED,
                                       "%s has no %s; a driver of CUDA 11.0 or later is needed",
                                       LIBRARY, table[i].symbol);
            return false;
        }
        memcpy((char *)&state.calls + table[i].offset, &found, sizeof found);
    }
    return true;
}

static void open_once(void)
{
    /* It stays: driver threads and exit handlers are in it. */
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        state.status =
            tenrec_fail(&state.why, TENREC_EUNSUPPORTED, "no CUDA driver: %s", dlerror());
        return;
    }
    if (!look_up(library))
        return;
    state.status = DRIVER(init, -1, &state.why, 0);
    if (state.status) {
        state.status = TENREC_EUNSUPPORTED;
        state.why.code = TENREC_EUNSUPPORTED;
    }
}

tenrec_status driver_open(tenrec_error *err)
{
    pthread_once(&state.once, open_once);
    if (state.status && err)
        *err = state.why;
    return state.status;
}
