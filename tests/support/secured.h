/* SPDX-License-Identifier: Apache-2.0 */
/* secured.h - the demands of a side that has a group secret, without a configuration. */
#ifndef TENREC_TESTS_SECURED_H
#define TENREC_TESTS_SECURED_H

#include "../testing.h"

#include "core/base/clock.h"
#include "security/proof/proof.h"
#include "security/proof/security.h"

/* The secret is `text`, of 16 characters or more. Drop it with security_drop. */
static inline struct security *secured(const char *text, enum security_plain store_plain)
{
    struct security *s;
    tenrec_error err;

    assert_status(security_open(NULL, CLOCK_NEVER, &s, &err), &err);
    assert_null(s->secret);
    s->mode = SECURITY_SECRET;
    s->store_plain = store_plain;
    assert_status(secret_new(text, strlen(text), &s->secret, &err), &err);
    return s;
}

static inline struct proof *secured_proof(enum proof_side side, const char *secret,
                                          const char *purpose)
{
    struct proof_terms terms = { .side = side,
                                 .purpose = purpose,
                                 .me = { .rank = -1, .name = "", .address = "" },
                                 .peer = { .rank = -1, .name = "", .address = "" } };
    struct proof *p;
    tenrec_error err;

    assert_status(secret_new(secret, strlen(secret), &terms.secret, &err), &err);
    assert_status(proof_open(&terms, &p, &err), &err);
    secret_drop(terms.secret);
    return p;
}

/* The sides of a proof; proof_close them. */
static inline struct proof *secured_client(const char *secret, const char *purpose)
{
    return secured_proof(PROOF_DIALLER, secret, purpose);
}
static inline struct proof *secured_listener(const char *secret, const char *purpose)
{
    return secured_proof(PROOF_LISTENER, secret, purpose);
}

#endif
