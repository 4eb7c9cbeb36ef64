/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/resolve.h"

#include <string.h>

/* Returns true at the end of a host: before a port or a path, or at the end of the text. */
static bool host_ends(char c)
{
    return c == '\0' || c == ':' || c == '/';
}

bool this_host_has(const char *address)
{
    const char *at = strstr(address, "://");

    if (strncmp(address, "unix:", 5) == 0 || !*address)
        return true;
    at = at ? at + 3 : address;
    at += *at == '[';
    if (strncmp(at, "127.", 4) == 0 && host_ends(at[strspn(at, "0123456789.")]))
        return true; /* and no name of a host that begins so */
    return *at == '/' || *at == '@' || strncmp(at, "::1]", 4) == 0 || strcmp(at, "::1") == 0 ||
           (strncmp(at, "localhost", 9) == 0 && host_ends(at[9]));
}
