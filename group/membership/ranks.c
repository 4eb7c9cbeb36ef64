/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/membership.h"

#include <stdio.h>
#include <string.h>

static size_t ranks_append(char *ret, size_t room, size_t at, const char *text)
{
    int n = snprintf(ret + at, room - at, "%s", text);

    return at + (size_t)n < room ? at + (size_t)n : room - 1;
}

void ranks_text(char *ret, size_t room, const bool *flag, int32_t n,
                const struct tenrec_member *member)
{
    size_t at = 0, first_at;
    int32_t count = 0;
    char one[200];

    for (int32_t i = 0; i < n; i++)
        count += flag[i];
    at = ranks_append(ret, room, at, count == 1 ? "rank " : "ranks ");
    first_at = at;
    for (int32_t i = 0; i < n; i++) {
        int32_t end = i;
        if (!flag[i])
            continue;
        /* A range would hide names. */
        while (!member && end + 1 < n && flag[end + 1])
            end++;
        if (end > i + 1)
            snprintf(one, sizeof one, "%s%d-%d", at > first_at ? ", " : "", i, end);
        else if (member)
            snprintf(one, sizeof one, "%s%d (\"%s\")", at > first_at ? ", " : "", i,
                     member[i].name);
        else
            snprintf(one, sizeof one, "%s%d", at > first_at ? ", " : "", i);
        if (at + strlen(one) + 40 > room) {
            at = ranks_append(ret, room, at, " and more");
            break;
        }
        at = ranks_append(ret, room, at, one);
        i = end > i + 1 ? end : i;
    }
    snprintf(one, sizeof one, " of %d", n);
    ranks_append(ret, room, at, one);
}

/* Each worker checks the names of all. */
static bool is_of_a_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':' || c == '-';
}

tenrec_status ranks_check_name(const char *label, const char *name, tenrec_error *err)
{
    size_t len = 0;

    while (name && is_of_a_name(name[len]))
        len++;
    if (len >= 1 && len <= TENREC_NAME_MAX && name[len] == '\0')
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EINVAL, "%s \"%.140s\" must be 1 to %d of A-Z a-z 0-9 _ : -",
                       label, name ? name : "", TENREC_NAME_MAX);
}

tenrec_status ranks_make_name(const char *pattern, int32_t rank, char ret[TENREC_NAME_MAX + 1],
                              tenrec_error *err)
{
    const char *mark = strstr(pattern, "{rank}");
    int n;

    if (mark)
        n = snprintf(ret, TENREC_NAME_MAX + 1, "%.*s%d%s", (int)(mark - pattern), pattern,
                     (int)rank, mark + strlen("{rank}"));
    else
        n = snprintf(ret, TENREC_NAME_MAX + 1, "%s", pattern);
    if (n >= 0 && n <= TENREC_NAME_MAX)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EINVAL, "worker.name '%s': longer than %d bytes", pattern,
                       TENREC_NAME_MAX);
}

tenrec_status ranks_check(int32_t rank, int32_t world, tenrec_error *err)
{
    if (world < 1 || world > RANKS_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "world size %d is not within 1..%d", world,
                           RANKS_MAX);
    if (rank < 0 || rank >= world)
        return tenrec_fail(err, TENREC_EINVAL, "rank %d is not within 0..%d (world size %d)", rank,
                           world - 1, world);
    return TENREC_OK;
}
