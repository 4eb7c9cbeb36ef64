/* SPDX-License-Identifier: Apache-2.0 */
#include "draw.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

tenrec_status store_draw(char ret[17], tenrec_error *err)
{
    uint64_t n;

    if (getrandom(&n, sizeof n, 0) != (ssize_t)sizeof n)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot get a random number");
    snprintf(ret, 17, "%016" PRIx64, n);
    return TENREC_OK;
}
