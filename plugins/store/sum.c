/* SPDX-License-Identifier: Apache-2.0 */
#include "sum.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

bool sum_read(const char *text, size_t len, int64_t *ret)
{
    char *end;

    errno = 0;
    *ret = strtoll(text, &end, 10);
    return len > 0 && (*text == '-' || (*text >= '0' && *text <= '9')) && end == text + len &&
           errno == 0;
}

tenrec_status sum_add(const char *key, const char *held, size_t len, int64_t delta, char ret[24],
                      tenrec_error *err)
{
    int64_t sum = 0;

    if ((held && !sum_read(held, len, &sum)) || __builtin_add_overflow(sum, delta, &sum))
        return tenrec_fail(err, TENREC_EINVAL,
                           "cannot add to key \"%.100s\": the value is no integer of 64 bits", key);
    snprintf(ret, 24, "%" PRId64, sum);
    return TENREC_OK;
}
