/* SPDX-License-Identifier: Apache-2.0 */
/* tls_absent.c - a build without libssl: no context can be opened, so nothing else is called. */
#include "tls.h"

tenrec_status tls_context_open(const struct tls_files *files, struct tls_context **ret,
                               tenrec_error *err)
{
    (void)files, (void)ret;
    return tenrec_fail(err, TENREC_EUNSUPPORTED,
                       "rediss:// requires TLS, which this build of the plugin lacks (libssl was "
                       "missing): build it again, or use a tunnel such as stunnel, and redis:// to "
                       "its local end");
}

void tls_context_drop(struct tls_context *c)
{
    (void)c;
}

tenrec_status tls_open(struct tls_context *c, const char *host, struct tls **ret, tenrec_error *err)
{
    (void)c, (void)host, (void)ret;
    return tenrec_fail(err, TENREC_EUNSUPPORTED, "no TLS in this build");
}

void tls_drop(struct tls *t)
{
    (void)t;
}

enum tls_step tls_shake(struct tls *t, tenrec_error *err)
{
    (void)t, (void)err;
    return TLS_FAILED;
}

tenrec_status tls_take(struct tls *t, const void *wire, size_t len, tenrec_error *err)
{
    (void)t, (void)wire, (void)len;
    return tenrec_fail(err, TENREC_EUNSUPPORTED, "no TLS in this build");
}

enum tls_step tls_read(struct tls *t, void *ret, size_t room, size_t *ret_len, tenrec_error *err)
{
    (void)t, (void)ret, (void)room, (void)ret_len, (void)err;
    return TLS_FAILED;
}

tenrec_status tls_write(struct tls *t, const void *data, size_t len, tenrec_error *err)
{
    (void)t, (void)data, (void)len;
    return tenrec_fail(err, TENREC_EUNSUPPORTED, "no TLS in this build");
}

const char *tls_output(struct tls *t, size_t *ret_len)
{
    (void)t;
    *ret_len = 0;
    return NULL;
}

void tls_sent(struct tls *t)
{
    (void)t;
}
