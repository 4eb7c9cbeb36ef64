/* SPDX-License-Identifier: Apache-2.0 */
#include "store_server/store_gate.h"

#include "base/clock.h"
#include "base/memory.h"
#include "security/proof.h"
#include "store_server/store_request.h"

#include <stdlib.h>

/* The first byte of a proof; no request has that number. */
#define PROOF_FIRST 'T'
_Static_assert(STORE_OP_COUNT < PROOF_FIRST, "the first byte tells a proof from a request");

struct store_gate {
    struct security *security; /* counted */
    const struct store_gate_ops *ops;
    void *arg;
    struct proof *proof; /* begun by the first byte */
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

/* A Tenrec client without a secret learns from a refusal which proof it lacks. */
static void gate_refuse_plain(struct store_gate *g)
{
    if (gate_begin_proof(g, NULL) != TENREC_OK)
        return;
    proof_demand(g->proof);
    gate_answer(g);
}

tenrec_status store_gate_take(struct store_gate *g, const void *data, size_t len, size_t *ret_used,
                              tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    *ret_used = 0;
    if (g->open || len == 0)
        return TENREC_OK;
    if (!g->proof && *(const char *)data != PROOF_FIRST) {
        st = g->ops->check_plain(g->arg, g->security->store_plain, err);
        g->open = st == TENREC_OK;
        if (!g->open)
            gate_refuse_plain(g);
        return st;
    }
    if (!g->proof)
        st = gate_begin_proof(g, err);
    return st == TENREC_OK ? gate_prove(g, data, len, ret_used, err) : st;
}

bool store_gate_is_open(const struct store_gate *g)
{
    return g->open;
}

bool store_gate_is_late(const struct store_gate *g, uint64_t now_ns)
{
    return !g->open && now_ns > g->begun_ns + STORE_GATE_MS * UINT64_C(1000000);
}
