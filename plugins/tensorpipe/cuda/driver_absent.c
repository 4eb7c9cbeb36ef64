/* SPDX-License-Identifier: Apache-2.0 */
/* driver_absent.c - replaces the driver in a build without channels for devices. */
#include "cuda/driver.h"

const bool driver_is_built = false;

tenrec_status driver_open(tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EUNSUPPORTED,
                       "this build has no channels for devices (meson -Dcuda=disabled)");
}

/* Without a driver that was opened none of the others is called. */

const struct driver *driver(void)
{
    return NULL;
}

tenrec_status driver_check(driver_result r, const char *call, int index, tenrec_error *err)
{
    (void)r;
    (void)call;
    (void)index;
    return driver_open(err);
}

const char *driver_symbol(size_t offset)
{
    (void)offset;
    return "";
}
