/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_dial.h"

#include "security/proof/proof.h"

#include <tenrec/proof.h>

#define MAGIC_LEN ((size_t)TENREC_PROOF_MAGIC_LEN)
#define NO_PROOF                                                                                   \
    "the store speaks no proof of the group secret, which this process has: it is torch's "        \
    "TCPStore, or a store without a secret"

/* A server that has not proved anything may have any of these reasons. */
#define CLOSED                                                                                     \
    "the store closed the connection instead of a proof: it has no descriptor left for another "   \
    "client (ulimit -n), or is about to end, or it speaks no proof of the group secret, which "    \
    "this process has: it is torch's TCPStore, or a store without a secret"

static tenrec_status proof_send(struct store_conn *c, struct proof *p, uint64_t deadline_ns,
                                tenrec_error *err)
{
    struct bytes out = { 0 };
    size_t len;
    const void *data = proof_output(p, &len);
    tenrec_status st = TENREC_OK;

    if (len > 0) {
        bytes_add(&out, data, len);
        st = store_conn_send(c, &out, deadline_ns, err);
        bytes_free(&out);
    }
    return st;
}

/* Reads once and continues the proof. A server sends nothing beyond the exchange. */
static tenrec_status proof_receive(struct store_conn *c, struct proof *p, uint64_t deadline_ns,
                                   bool *ret_begun, tenrec_error *err)
{
    uint8_t in[PROOF_RECORD_MAX];
    size_t n, at = 0, used = 1;
    tenrec_status st = store_conn_read_some(c, in, sizeof in, deadline_ns, &n, err);

    *ret_begun = *ret_begun || (st == TENREC_OK && proof_begins(in, n));
    while (st == TENREC_OK && at < n && used > 0) {
        st = proof_take(p, in + at, n - at, &used, err);
        at += used;
        if (st == TENREC_OK)
            st = proof_send(c, p, deadline_ns, err);
        else
            proof_send(c, p, deadline_ns, NULL);
    }
    if (st == TENREC_OK && at < n)
        st = tenrec_fail(err, TENREC_EPERM, "the store sent bytes behind its proof");
    return st;
}

tenrec_status store_proof_exchange(struct store_conn *c, struct secret *secret,
                                   uint64_t deadline_ns, tenrec_error *err)
{
    const struct proof_terms terms = { .side = PROOF_DIALLER,
                                       .secret = secret,
                                       .purpose = STORE_PURPOSE,
                                       .me = { .rank = -1, .name = "", .address = "" },
                                       .peer = { .rank = -1, .name = "", .address = "" } };
    struct proof *p;
    tenrec_status st = proof_open(&terms, &p, err);
    bool begun = false; /* the server has sent a record */

    if (st != TENREC_OK)
        return st;
    st = proof_send(c, p, deadline_ns, err);
    while (st == TENREC_OK && !proof_is_complete(p))
        st = proof_receive(c, p, deadline_ns, &begun, err);
    proof_close(p);
    if (st == TENREC_EPEER_LOST)
        tenrec_fail(err, st, "%s",
                    begun ? "the store closed the connection during the proof of the group secret"
                          : CLOSED);
    if (st == TENREC_ETIMEDOUT)
        tenrec_fail(err, st,
                    "the store accepts connections but does not answer the proof of the "
                    "group secret");
    if (st != TENREC_EPROTOCOL)
        return st;
    if (!begun)
        return tenrec_fail(err, TENREC_EPERM, NO_PROOF);
    tenrec_error_prefix(err, "%s", NO_PROOF); /* such as another version of the proof */
    if (err)
        err->code = TENREC_EPERM;
    return TENREC_EPERM;
}

static tenrec_status proof_fail_demand(enum security_mode theirs, const struct security *ours,
                                       tenrec_error *err)
{
    if (theirs == SECURITY_SECRET && (!ours || ours->mode == SECURITY_NONE))
        return tenrec_fail(err, TENREC_EPERM,
                           "the store asks for a group secret; none was given: --secret-file or "
                           "TENREC_SECRET_FILE");
    return tenrec_fail(
        err, TENREC_EPERM, "the store is in security mode '%s', this process in mode '%s' (%s)",
        security_mode_name(theirs), security_mode_name(ours ? ours->mode : SECURITY_NONE),
        ours ? ours->mode_source : "default");
}

tenrec_status store_proof_check_demand(struct store_conn *c, const void *begun, size_t len,
                                       const struct security *security, uint64_t deadline_ns,
                                       tenrec_error *err)
{
    uint8_t answer[PROOF_DEMAND_LEN];
    enum security_mode mode;
    tenrec_status st = TENREC_OK;

    if (len > 0)
        memcpy(answer, begun, len);
    if (len < MAGIC_LEN)
        st = store_conn_read(c, answer + len, MAGIC_LEN - len, deadline_ns, err);
    if (st != TENREC_OK || !proof_begins(answer, MAGIC_LEN))
        return st;
    len = len < MAGIC_LEN ? MAGIC_LEN : len;
    st = store_conn_read(c, answer + len, sizeof answer - len, deadline_ns, err);
    if (st != TENREC_OK)
        return st;
    mode = proof_demanded(answer, sizeof answer);
    return mode == SECURITY_NONE ? TENREC_OK : proof_fail_demand(mode, security, err);
}
