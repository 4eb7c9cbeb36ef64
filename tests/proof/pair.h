/* SPDX-License-Identifier: Apache-2.0 */
/* pair.h - both sides of a proof in one thread. */
#ifndef TENREC_TESTS_SECURITY_PAIR_H
#define TENREC_TESTS_SECURITY_PAIR_H

#include "security/proof/proof.h"

#include "../testing.h"

/* The terms of a dialler worker1 that wants worker0, and of the listener worker0. */
static inline struct proof_terms pair_dialler(struct secret *secret)
{
    return (struct proof_terms){
        .side = PROOF_DIALLER,
        .secret = secret,
        .purpose = "test",
        .me = { 1, 11, "worker1", "uv://127.0.0.1:1111" },
        .peer = { 0, 10, "worker0", "uv://127.0.0.1:1010" },
        .label = "label",
        .label_len = 5,
    };
}

static inline struct proof_terms pair_listener(struct secret *secret)
{
    return (struct proof_terms){
        .side = PROOF_LISTENER,
        .secret = secret,
        .purpose = "test",
        .me = { 0, 10, "worker0", "uv://127.0.0.1:1010" },
    };
}

static inline struct secret *pair_secret(uint8_t fill)
{
    uint8_t bytes[SECRET_BYTES];
    struct secret *s;
    tenrec_error err;

    memset(bytes, fill, sizeof bytes);
    assert_status(secret_new(bytes, sizeof bytes, &s, &err), &err);
    return s;
}

struct pair {
    struct proof *side[2];
    tenrec_status status[2];
    tenrec_error err[2];
};

enum { DIALLER, LISTENER };

static inline void pair_open_with(struct pair *x, const struct proof_terms *dialler,
                                  const struct proof_terms *listener)
{
    tenrec_error err;

    memset(x->status, 0, sizeof x->status);
    memset(x->err, 0, sizeof x->err);
    assert_status(proof_open(dialler, &x->side[DIALLER], &err), &err);
    assert_status(proof_open(listener, &x->side[LISTENER], &err), &err);
}

/* Both sides with the terms above; `fill` makes the secret of each. */
static inline void pair_open(struct pair *x, uint8_t dialler_fill, uint8_t listener_fill)
{
    struct secret *a = pair_secret(dialler_fill), *b = pair_secret(listener_fill);
    const struct proof_terms dialler = pair_dialler(a), listener = pair_listener(b);

    pair_open_with(x, &dialler, &listener);
    secret_drop(a);
    secret_drop(b);
}

static inline void pair_close(struct pair *x)
{
    proof_close(x->side[DIALLER]);
    proof_close(x->side[LISTENER]);
}

/* Gives bytes to one side. Returns true if all belonged to the exchange. */
static inline bool pair_give(struct pair *x, int to, const void *data, size_t n)
{
    size_t used;

    x->status[to] = proof_take(x->side[to], data, n, &used, &x->err[to]);
    return used == n;
}

/* Carries what one side has to say, `step` bytes at a time, to the other. Returns the bytes. */
static inline size_t pair_carry(struct pair *x, int from, size_t step)
{
    uint8_t copy[PROOF_RECORD_MAX];
    size_t len;
    const void *out = proof_output(x->side[from], &len);

    assert_true(len <= sizeof copy);
    memcpy(copy, out, len);
    for (size_t at = 0; at < len; at += step)
        if (x->status[!from] == TENREC_OK)
            pair_give(x, !from, copy + at, step < len - at ? step : len - at);
    return len;
}

/* Carries until neither side has anything to say. */
static inline void pair_run(struct pair *x, size_t step)
{
    size_t moved;

    do {
        moved = pair_carry(x, DIALLER, step);
        moved += pair_carry(x, LISTENER, step);
    } while (moved > 0);
}

#endif
