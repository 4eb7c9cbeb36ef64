/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_gate.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "group/store/store_request.h"
#include "security/proof/proof.h"
#include "security/tls/tls.h"

#include <stdlib.h>

/* The first bytes of a proof and of TLS; no request has these numbers. */
#define PROOF_FIRST 'T'
_Static_assert(STORE_OP_COUNT < PROOF_FIRST, "the first byte tells a proof from a request");
_Static_assert(STORE_OP_COUNT < STORE_TLS_FIRST, "the first byte tells TLS from a request");

struct store_gate {
    struct security *security; /* counted */
    const struct store_gate_ops *ops;
    void *arg;
    struct proof *proof;     /* begun by the first byte */
    struct tls_session *tls; /* likewise */
    bool open;
    uint64_t begun_ns;
};

struct store_gate *store_gate_new(struct security *security, const struct store_gate_ops *ops,
                                  void *arg)
{
    struct store_gate *g = memory_new(1, sizeof *g);

    if (g)
        *g = (struct store_gate){
            .security = security_share(security), .ops = ops, .arg = arg, .begun_ns = clock_now_ns()
        };
    return g;
}

void store_gate_drop(struct store_gate *g)
{
    if (!g)
        return;
    proof_close(g->proof);
    tls_session_close(g->tls);
    security_drop(g->security);
    free(g);
}

static tenrec_status gate_begin_proof(struct store_gate *g, tenrec_error *err)
{
    const struct proof_terms terms = { .side = PROOF_LISTENER,
                                       .secret = g->security->secret,
                                       .purpose = STORE_PURPOSE,
                                       .me = { .rank = -1, .name = "", .address = "" } };

    return proof_open(&terms, &g->proof, err);
}

static void gate_answer(struct store_gate *g)
{
    size_t len;
    const void *data = proof_output(g->proof, &len);

    if (len > 0)
        g->ops->write(g->arg, data, len);
}

/* Passes the bytes of the exchange to the proof, and what it answers to the client. */
static tenrec_status gate_prove(struct store_gate *g, const char *data, size_t len,
                                size_t *ret_used, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    size_t used = 1;

    while (st == TENREC_OK && *ret_used < len && used > 0 && !g->open) {
        st = proof_take(g->proof, data + *ret_used, len - *ret_used, &used, err);
        *ret_used += used;
        gate_answer(g);
        g->open = st == TENREC_OK && proof_is_complete(g->proof);
    }
    return st;
}

/* ---- TLS ------------------------------------------------------------------------- */

/* A client of a store has no name. */
static tenrec_status gate_shake(struct store_gate *g, const void *data, size_t len,
                                tenrec_error *err)
{
    tenrec_status st = tls_session_feed(g->tls, data, len, err);
    size_t n;
    const void *out;

    if (st == TENREC_OK)
        st = tls_session_shake(g->tls, err);
    /* Also of a failed handshake: an alert says why. */
    if ((out = tls_session_output(g->tls, &n)) && n > 0)
        g->ops->write(g->arg, out, n);
    if (st == TENREC_EAGAIN)
        return TENREC_OK;
    if (st == TENREC_OK)
        st = tls_session_check_name(g->tls, "", err);
    g->open = st == TENREC_OK;
    return st;
}

/* ---- the first byte ---------------------------------------------------------------- */

/* Returns the first byte of the clients that have our mode. */
static char gate_expects(const struct store_gate *g)
{
    return g->security->tls ? STORE_TLS_FIRST : PROOF_FIRST;
}

/* A Tenrec client of another mode learns from a refusal which mode this side has. */
static void gate_demand(struct store_gate *g)
{
    if (gate_begin_proof(g, NULL) != TENREC_OK)
        return;
    proof_demand(g->proof, g->security->mode);
    gate_answer(g);
}

/* Decides on a client that begins neither a proof in mode secret, nor TLS in the modes tls and
 * mtls. */
static tenrec_status gate_judge(struct store_gate *g, char first, tenrec_error *err)
{
    tenrec_status st;

    if (first == PROOF_FIRST || first == STORE_TLS_FIRST)
        st = tenrec_fail(err, TENREC_EPERM, "it begins %s, and this store is in security mode '%s'",
                         first == PROOF_FIRST ? "a proof of a group secret" : "TLS",
                         security_mode_name(g->security->mode));
    else
        st = g->ops->check_plain(g->arg, g->security->store_plain, err);
    g->open = st == TENREC_OK;
    if (!g->open)
        gate_demand(g);
    return st;
}

tenrec_status store_gate_take(struct store_gate *g, const void *data, size_t len, size_t *ret_used,
                              tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    *ret_used = 0;
    if (g->open || len == 0)
        return TENREC_OK;
    if (!g->proof && !g->tls) {
        if (*(const char *)data != gate_expects(g))
            return gate_judge(g, *(const char *)data, err);
        st = g->security->tls ? tls_session_open(g->security->tls, -1, TLS_LISTENER, &g->tls, err)
                              : gate_begin_proof(g, err);
    }
    if (st != TENREC_OK || !g->tls)
        return st == TENREC_OK ? gate_prove(g, data, len, ret_used, err) : st;
    *ret_used = len;
    return gate_shake(g, data, len, err);
}

struct tls_session *store_gate_take_tls(struct store_gate *g)
{
    struct tls_session *tls = g->tls;

    g->tls = NULL;
    return tls;
}

bool store_gate_is_open(const struct store_gate *g)
{
    return g->open;
}

bool store_gate_is_late(const struct store_gate *g, uint64_t now_ns)
{
    return !g->open && now_ns > g->begun_ns + STORE_GATE_MS * UINT64_C(1000000);
}
