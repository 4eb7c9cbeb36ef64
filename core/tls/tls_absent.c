/* SPDX-License-Identifier: Apache-2.0 */
/* tls_absent.c - a build without libssl: every way in is refused, so that no session exists. */
#include "tls/tls_session.h"

#include <errno.h>

#define MISSING "this build has no TLS (meson setup -Dtls=enabled needs libssl of OpenSSL 3)"

const char *tls_missing(void)
{
    return MISSING;
}

tenrec_status tls_open_secret(struct secret *secret, struct tls **ret, tenrec_error *err)
{
    (void)secret;
    (void)ret;
    return tenrec_fail(err, TENREC_ECONFIG, MISSING);
}

tenrec_status tls_open_files(const struct tls_files *files, struct tls **ret, tenrec_error *err)
{
    (void)files;
    (void)ret;
    return tenrec_fail(err, TENREC_ECONFIG, MISSING);
}

void tls_forbid_kernel(struct tls *t)
{
    (void)t;
}

struct tls *tls_share(struct tls *t)
{
    return t;
}

void tls_drop(struct tls *t)
{
    (void)t;
}

tenrec_status tls_session_open(struct tls *t, int fd, enum tls_side side, struct tls_session **ret,
                               tenrec_error *err)
{
    (void)t;
    (void)fd;
    (void)side;
    (void)ret;
    return tenrec_fail(err, TENREC_ECONFIG, MISSING);
}

void tls_session_close(struct tls_session *s)
{
    (void)s;
}

tenrec_status tls_session_shake(struct tls_session *s, tenrec_error *err)
{
    (void)s;
    return tenrec_fail(err, TENREC_ECONFIG, MISSING);
}

bool tls_session_is_congested(struct tls_session *s)
{
    (void)s;
    return false;
}

ssize_t tls_session_read(struct tls_session *s, const struct iovec *iov, int n)
{
    (void)s;
    (void)iov;
    (void)n;
    return -EPROTO;
}

ssize_t tls_session_write(struct tls_session *s, const struct iovec *iov, unsigned n)
{
    (void)s;
    (void)iov;
    (void)n;
    return -EPROTO;
}

bool tls_session_is_drained(const struct tls_session *s)
{
    (void)s;
    return true;
}

const char *tls_session_reason(const struct tls_session *s)
{
    (void)s;
    return MISSING;
}

tenrec_status tls_session_feed(struct tls_session *s, const void *data, size_t len,
                               tenrec_error *err)
{
    (void)s;
    (void)data;
    (void)len;
    return tenrec_fail(err, TENREC_ECONFIG, MISSING);
}

const void *tls_session_output(struct tls_session *s, size_t *ret_len)
{
    (void)s;
    *ret_len = 0;
    return NULL;
}

tenrec_status tls_session_binding(struct tls_session *s, uint8_t ret[TLS_BINDING_BYTES],
                                  tenrec_error *err)
{
    (void)s;
    (void)ret;
    return tenrec_fail(err, TENREC_ECONFIG, MISSING);
}

tenrec_status tls_session_check_name(struct tls_session *s, const char *name, tenrec_error *err)
{
    (void)s;
    (void)name;
    return tenrec_fail(err, TENREC_ECONFIG, MISSING);
}

const char *tls_session_describe(const struct tls_session *s)
{
    (void)s;
    return MISSING;
}
