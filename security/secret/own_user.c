/* SPDX-License-Identifier: Apache-2.0 */
#include "security/secret/secret.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* Also stands for each user that a user namespace has no number for. */
#define OVERFLOW_USER 65534

/* Returns true if this user namespace has a number for each user. */
static bool own_user_has_all_numbers(void)
{
    FILE *map = fopen("/proc/self/uid_map", "re");
    unsigned long first = 1, outside = 1, count = 0;
    const bool read = map && fscanf(map, "%lu %lu %lu", &first, &outside, &count) == 3;

    if (map)
        fclose(map);
    return read && first == 0 && outside == 0 && count >= UINT32_MAX;
}

bool own_user_is(uid_t user)
{
    return user == geteuid() && (user != OVERFLOW_USER || own_user_has_all_numbers());
}
