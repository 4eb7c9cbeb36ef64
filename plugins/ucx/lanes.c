/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.c - UCX reports its choice as text only, which is parsed here: a line "lane[0]:
 * 2:tcp/eth0.0 md[1] ..." for each transport. */
#include "resources.h"

#include <stdio.h>
#include <string.h>

/* Returns true if "a, b" has the item. */
static bool lanes_have(const char *lanes, const char *one, size_t len)
{
    while (*lanes) {
        const size_t n = strcspn(lanes, ",");

        if (n == len && memcmp(lanes, one, n) == 0)
            return true;
        lanes += n;
        lanes += strspn(lanes, ", ");
    }
    return false;
}

/* Adds the lane at `at`, "tcp/eth0.0 md[1] ...", without its path, ".0". */
static void lanes_add(char *lanes, size_t room, const char *at)
{
    const size_t used = strlen(lanes);
    size_t len = strcspn(at, " \t\n"), name = len;

    while (name > 0 && at[name - 1] != '.')
        name--;
    if (name > 1)
        len = name - 1;
    if (len == 0 || lanes_have(lanes, at, len) || used + len + 3 > room)
        return;
    snprintf(lanes + used, room - used, "%s%.*s", used ? ", " : "", (int)len, at);
}

/* The lane of the connection manager has no number in front. */
void lanes_parse(const char *text, char *ret, size_t room)
{
    *ret = '\0';
    for (const char *at = text; (at = strstr(at, "lane[")) != NULL; at++) {
        const char *end = at + strcspn(at, "\n"), *number = strstr(at, "]:");
        size_t digits;

        if (!number || number > end)
            continue;
        number += 2 + strspn(number + 2, " \t");
        digits = strspn(number, "0123456789");
        if (digits && number[digits] == ':')
            lanes_add(ret, room, number + digits + 1);
    }
}

bool lanes_are_tcp(const char *lanes)
{
    const char *at = lanes;

    while (strncmp(at, "tcp/", 4) == 0) {
        at = strstr(at, ", ");
        if (!at)
            return true;
        at += 2;
    }
    return false;
}

bool lanes_list_names_tcp(const char *list)
{
    while (*list) {
        const size_t len = strcspn(list, ",");

        if (len == 3 && strncmp(list, "tcp", 3) == 0)
            return true;
        list += len + (list[len] == ',');
    }
    return false;
}
