/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_dial.h"

#include "security/proof/security.h"
#include "security/tls/tls.h"

#include <poll.h>
#include <sys/socket.h>

#define NO_TLS                                                                                     \
    "the store speaks no TLS, which security mode '%s' of this process (%s) demands: it is "       \
    "torch's TCPStore, or a store in mode none"
#define ALERT_FIRST 0x15 /* the first byte of a server that refuses at once */

static tenrec_status tls_no_tls(const struct security *s, tenrec_status st, tenrec_error *err)
{
    return tenrec_fail(err, st, NO_TLS, security_mode_name(s->mode), s->mode_source);
}

/* Waits for the first byte of the server and checks that it begins TLS. */
static tenrec_status tls_check_first(struct store_conn *c, const struct security *s,
                                     uint64_t deadline_ns, tenrec_error *err)
{
    uint8_t first = 0;
    tenrec_status st = store_conn_wait(c, POLLIN, deadline_ns, err);

    if (st != TENREC_OK)
        return st;
    if (recv(c->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
        return tls_no_tls(s, TENREC_EPEER_LOST, err);
    if (first == STORE_TLS_FIRST || first == ALERT_FIRST)
        return TENREC_OK;
    st = store_proof_check_demand(c, NULL, 0, s, deadline_ns, err);
    return st == TENREC_OK ? tls_no_tls(s, TENREC_EPERM, err) : st;
}

static tenrec_status tls_shake(struct store_conn *c, struct tls_session *tls,
                               const struct security *s, uint64_t deadline_ns, tenrec_error *err)
{
    bool checked = false;
    tenrec_status st;

    while ((st = tls_session_shake(tls, err)) == TENREC_EAGAIN) {
        if (tls_session_is_congested(tls))
            st = store_conn_wait(c, POLLOUT, deadline_ns, err);
        else if (checked)
            st = store_conn_wait(c, POLLIN, deadline_ns, err);
        else
            checked = (st = tls_check_first(c, s, deadline_ns, err)) == TENREC_OK;
        if (st == TENREC_ETIMEDOUT)
            tenrec_fail(err, st, "the store accepts connections but does not answer in TLS");
        if (st != TENREC_OK)
            return st;
    }
    if (st == TENREC_ECONNECT || st == TENREC_EPROTOCOL) {
        st = st == TENREC_ECONNECT ? TENREC_EPEER_LOST : TENREC_EPERM;
        if (!checked) /* the server spoke, or ended, before it had our first bytes */
            return tls_no_tls(s, st, err);
        tenrec_fail(err, st, "%s", tls_session_reason(tls));
    }
    if (st == TENREC_OK) /* a store has no name */
        st = tls_session_check_name(tls, "", err);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "security mode '%s' (%s)", security_mode_name(s->mode),
                            s->mode_source);
    return st;
}

tenrec_status store_tls_shake(struct store_conn *c, const struct security *security,
                              uint64_t deadline_ns, tenrec_error *err)
{
    struct tls_session *tls;
    tenrec_status st = tls_session_open(security->tls, c->fd, TLS_DIALLER, &tls, err);

    if (st != TENREC_OK)
        return st;
    st = tls_shake(c, tls, security, deadline_ns, err);
    if (st == TENREC_OK)
        c->tls = tls;
    else
        tls_session_close(tls);
    return st;
}
