/* SPDX-License-Identifier: Apache-2.0 */
#include "url.h"

#include <stdio.h>
#include <string.h>

/* A piece of the URL, not terminated. */
struct piece {
    const char *p;
    size_t len;
};

static int url_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static tenrec_status url_decode(struct piece from, const char *what, char *ret, size_t room,
                                tenrec_error *err)
{
    size_t n = 0;

    for (size_t i = 0; i < from.len; i++) {
        int c = (unsigned char)from.p[i];
        if (c == '%') {
            int high = i + 2 < from.len ? url_hex(from.p[i + 1]) : -1;
            int low = high >= 0 ? url_hex(from.p[i + 2]) : -1;
            if (low < 0 || high * 16 + low == 0)
                return tenrec_fail(err, TENREC_EINVAL,
                                   "the %s has a %% without two hexadecimal "
                                   "digits after it",
                                   what);
            c = high * 16 + low;
            i += 2;
        }
        if (n + 1 >= room)
            return tenrec_fail(err, TENREC_EINVAL, "the %s is longer than %zu bytes", what,
                               room - 1);
        ret[n++] = (char)c;
    }
    ret[n] = '\0';
    return TENREC_OK;
}

static tenrec_status read_login(struct piece login, struct store_url *ret, tenrec_error *err)
{
    const char *colon = memchr(login.p, ':', login.len);
    struct piece user = { login.p, colon ? (size_t)(colon - login.p) : login.len };
    struct piece password = { colon ? colon + 1 : login.p + login.len, 0 };
    tenrec_status st;

    password.len = (size_t)(login.p + login.len - password.p);
    st = url_decode(user, "user", ret->user, sizeof ret->user, err);
    if (st == TENREC_OK)
        st = url_decode(password, "password", ret->password, sizeof ret->password, err);
    if (st == TENREC_OK && !*ret->password)
        st =
            tenrec_fail(err, TENREC_EINVAL,
                        "the password before the @ is missing: write user:password@ or :password@");
    return st;
}

static tenrec_status read_port(struct piece text, uint16_t *ret, tenrec_error *err)
{
    unsigned long port = 0;

    for (size_t i = 0; i < text.len && port <= 65535; i++) {
        if (text.p[i] < '0' || text.p[i] > '9') /* maybe a password without its @ */
            return tenrec_fail(err, TENREC_EINVAL,
                               "the port is no number, or the @ after the password is missing");
        port = port * 10 + (unsigned long)(text.p[i] - '0');
    }
    if (port == 0 || port > 65535)
        return tenrec_fail(err, TENREC_EINVAL, "port \"%.*s\" is not within 1..65535",
                           (int)(text.len < 20 ? text.len : 20), text.p);
    *ret = (uint16_t)port;
    return TENREC_OK;
}

/* host, host:port, [v6] or [v6]:port. */
static tenrec_status read_host(struct piece text, const struct store_url_form *form,
                               struct store_host *ret, tenrec_error *err)
{
    bool bracket = text.len && text.p[0] == '[';
    const char *close = bracket ? memchr(text.p, ']', text.len) : NULL;
    const char *colon = close ? close + 1 : memchr(text.p, ':', text.len);
    const char *end = text.p + text.len;
    struct piece host;

    if (bracket && (!close || (close + 1 < end && close[1] != ':')))
        return tenrec_fail(err, TENREC_EINVAL, "expected [address]:port");
    if (!colon || colon >= end)
        colon = NULL;
    if (!bracket && colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
        return tenrec_fail(err, TENREC_EINVAL, "write an IPv6 address as [address]:port");
    host.p = text.p + bracket;
    host.len = (size_t)((bracket ? close : colon ? colon : end) - host.p);
    if (host.len == 0 || host.len >= sizeof ret->host)
        return tenrec_fail(err, TENREC_EINVAL, "expected %s://host:port/prefix, found no host",
                           form->scheme);
    memcpy(ret->host, host.p, host.len);
    ret->host[host.len] = '\0';
    ret->port = form->port;
    return colon
               ? read_port((struct piece){ colon + 1, (size_t)(end - colon - 1) }, &ret->port, err)
               : TENREC_OK;
}

/* With commas between them. */
static tenrec_status read_hosts(struct piece text, const struct store_url_form *form,
                                struct store_url *ret, tenrec_error *err)
{
    const char *const end = text.p + text.len;
    tenrec_status st = TENREC_OK;
    const char *comma;

    do {
        comma = form->most_hosts > 1 ? memchr(text.p, ',', (size_t)(end - text.p)) : NULL;
        text.len = (size_t)((comma ? comma : end) - text.p);
        if (ret->n_hosts == form->most_hosts)
            return tenrec_fail(err, TENREC_EINVAL, "the URL names more than %u hosts",
                               form->most_hosts);
        st = read_host(text, form, &ret->at[ret->n_hosts++], err);
        text.p = comma ? comma + 1 : end;
    } while (st == TENREC_OK && comma);
    return st;
}

static tenrec_status read_prefix(struct piece text, struct store_url *ret, tenrec_error *err)
{
    tenrec_status st;

    while (text.len && text.p[text.len - 1] == '/')
        text.len--;
    if (text.len == 0)
        text = (struct piece){ "tenrec", 6 };
    st = url_decode(text, "prefix", ret->prefix, sizeof ret->prefix, err);
    for (const char *p = ret->prefix; st == TENREC_OK && *p; p++)
        if (*p <= ' ' || (unsigned char)*p >= 127)
            st = tenrec_fail(
                err, TENREC_EINVAL,
                "the prefix has blanks, control characters or bytes that are not ASCII");
    return st;
}

tenrec_status store_url_read(const char *url, const struct store_url_form *form,
                             struct store_url *ret, tenrec_error *err)
{
    const size_t scheme = strlen(form->scheme);
    const char *rest = strstr(url, "://"), *at, *slash;
    tenrec_status st = TENREC_OK;

    memset(ret, 0, sizeof *ret);
    ret->tls = strncmp(url, form->scheme, scheme) == 0 && strncmp(url + scheme, "s:", 2) == 0;
    if (!rest)
        return tenrec_fail(err, TENREC_EINVAL, "expected %s://host:port/prefix, found no \"://\"",
                           form->scheme);
    rest += 3;
    /* The last @, so that a password may hold an @ or a slash. Logs mask a URL up to
     * the same @. */
    if ((at = strrchr(rest, '@'))) {
        st = read_login((struct piece){ rest, (size_t)(at - rest) }, ret, err);
        rest = at + 1;
    }
    slash = strchr(rest, '/');
    if (st == TENREC_OK)
        st = read_hosts((struct piece){ rest, slash ? (size_t)(slash - rest) : strlen(rest) }, form,
                        ret, err);
    if (st == TENREC_OK)
        st = read_prefix((struct piece){ slash ? slash + 1 : "", slash ? strlen(slash + 1) : 0 },
                         ret, err);
    return st;
}

void store_url_name(const struct store_url *url, const struct store_url_form *form, size_t room,
                    char *ret)
{
    size_t n = (size_t)snprintf(ret, room, "%s store ", form->scheme);

    for (uint32_t i = 0; i < url->n_hosts && n < room; i++) {
        const bool v6 = strchr(url->at[i].host, ':') != NULL;
        n += (size_t)snprintf(ret + n, room - n, "%s%s%.150s%s:%u", i ? "," : "", v6 ? "[" : "",
                              url->at[i].host, v6 ? "]" : "", url->at[i].port);
    }
    if (n < room)
        snprintf(ret + n, room - n, "/%.80s", url->prefix);
}
