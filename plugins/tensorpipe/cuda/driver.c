/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - loads libcuda, if it is installed. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#define LIBRARY "libcuda.so.1" /* the driver's; the Toolkit has nothing to do with it */

const bool driver_is_built = true;

static struct driver calls;

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
    return &calls;
}

tenrec_status driver_check(driver_result r, const char *call, int index, tenrec_error *err)
{
    const char *name = NULL, *text = NULL;
    char device[32] = "";

    if (r == DRIVER_SUCCESS)
        return TENREC_OK;
    if (index >= 0)
        snprintf(device, sizeof device, " for cuda:%d", index);
    calls.error_name(r, &name);
    calls.error_text(r, &text);
    return tenrec_fail(err, r == DRIVER_OUT_OF_MEMORY ? TENREC_ENOMEM : TENREC_EOS, "%s%s: %s (%s)",
                       call, device, name ? name : "unknown error",
                       text ? text : "the driver has no text for it");
}

/* As POSIX wants it: a pointer to data is copied to one to a function. */
static tenrec_status look_up(void *library, tenrec_error *err)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        void *found = dlsym(library, table[i].symbol);

        if (!found)
            return tenrec_fail(err, TENREC_EUNSUPPORTED,
                               "%s has no %s; a driver of CUDA 11.0 or later is needed", LIBRARY,
                               table[i].symbol);
        memcpy((char *)&calls + table[i].offset, &found, sizeof found);
    }
    return TENREC_OK;
}

tenrec_status driver_open(tenrec_error *err)
{
    /* It stays: driver threads and exit handlers are in it. */
    void *library = NULL;
    tenrec_status st;

    if (getauxval(AT_SECURE)) /* the driver obeys CUDA_ variables, which name files and libraries */
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "the CUDA driver is not loaded in a setuid or setgid program");
    library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "no CUDA driver: %s", dlerror());
    st = look_up(library, err);
    return st ? st : DRIVER(init, -1, err, 0);
}
