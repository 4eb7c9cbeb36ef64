/* SPDX-License-Identifier: Apache-2.0 */
#include "security/proof/security.h"

#include "core/backend/chain_layer.h"
#include "security/tls/tls.h"

static tenrec_status chain_tls_open(const struct tenrec_agent *self, int fd, bool dials,
                                    struct tenrec_tls **ret, tenrec_error *err)
{
    const struct security *s =
        (const struct security *)((const struct link *)self)->chain->id.guard;
    struct tls_session *session;
    tenrec_status st;

    if (!s->tls)
        return tenrec_fail(err, TENREC_ECONFIG, "security is not in mode tls or mtls");
    st = tls_session_open(s->tls, fd, dials ? TLS_DIALLER : TLS_LISTENER, &session, err);
    if (st == TENREC_OK)
        *ret = (struct tenrec_tls *)(void *)session;
    return st;
}

static tenrec_status chain_tls_shake(struct tenrec_tls *t, tenrec_error *err)
{
    return tls_session_shake(chain_tls_session(t), err);
}

static ssize_t chain_tls_read(struct tenrec_tls *t, const struct iovec *iov, int n)
{
    return tls_session_read(chain_tls_session(t), iov, n);
}

static ssize_t chain_tls_write(struct tenrec_tls *t, const struct iovec *iov, unsigned n)
{
    return tls_session_write(chain_tls_session(t), iov, n);
}

static bool chain_tls_drained(const struct tenrec_tls *t)
{
    return tls_session_is_drained((const struct tls_session *)(const void *)t);
}

static const char *chain_tls_cipher(const struct tenrec_tls *t)
{
    return tls_session_describe((const struct tls_session *)(const void *)t);
}

static const char *chain_tls_reason(const struct tenrec_tls *t)
{
    return tls_session_reason((const struct tls_session *)(const void *)t);
}

static void chain_tls_close(struct tenrec_tls *t)
{
    tls_session_close(chain_tls_session(t));
}

const struct tenrec_tls_service chain_tls_service = {
    .extension = { TENREC_EXTENSION_TLS, sizeof chain_tls_service, NULL },
    .open = chain_tls_open,
    .shake = chain_tls_shake,
    .read = chain_tls_read,
    .write = chain_tls_write,
    .drained = chain_tls_drained,
    .cipher = chain_tls_cipher,
    .reason = chain_tls_reason,
    .close = chain_tls_close,
};
