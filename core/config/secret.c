/* secret.c - what must not be printed. */
#include "config/secret.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define MASK "***"

/* The password of the first URL in `text`: "scheme://user:PASSWORD@". It ends
 * at the last '@' before a blank or quote, so that one that holds '@' or '/'
 * is covered whole. Returns its first byte, or NULL when there is none. */
static const char *find_password(const char *text, size_t *ret_len)
{
    const char *url = text;

    while ((url = strstr(url, "://"))) {
        const char *user = url + 3;
        size_t len = strcspn(user, " \t\r\n'\",");
        const char *at = memrchr(user, '@', len);
        const char *colon = at ? memchr(user, ':', (size_t)(at - user)) : NULL;
        if (colon) {
            *ret_len = (size_t)(at - colon) - 1;
            return colon + 1;
        }
        url = user;
    }
    return NULL;
}

char *secret_mask(const char *text)
{
    const char *password;
    size_t n = 0, len;
    char *out, *p;

    for (const char *s = text; (password = find_password(s, &len)); s = password + len)
        n++;
    out = p = memory_new(strlen(text) + n * strlen(MASK) + 1, 1);
    if (!out)
        return NULL;
    while ((password = find_password(text, &len))) {
        memcpy(p, text, (size_t)(password - text));
        p += password - text;
        p = stpcpy(p, MASK);
        text = password + len;
    }
    memcpy(p, text, strlen(text) + 1);
    return out;
}

void secret_mask_error(tenrec_error *err)
{
    char *masked;
    size_t len;

    if (!err || !find_password(err->text, &len))
        return;
    masked = secret_mask(err->text);
    snprintf(err->text, sizeof err->text, "%s", masked ? masked : "out of memory");
    free(masked);
}
