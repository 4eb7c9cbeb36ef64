/* SPDX-License-Identifier: Apache-2.0 */
#include "security/proof/proof.h"

#include "core/base/fail.h"
#include "core/base/memory.h"
#include "security/proof/proof_mac.h"
#include "security/proof/proof_record.h"
#include "security/secret/crypto.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum proof_state {
    WAITS_FOR_HELLO, /* the listener */
    WAITS_FOR_ANSWER,
    WAITS_FOR_CHALLENGE, /* the dialler */
    WAITS_FOR_ACCEPTED,
    COMPLETE,
    FAILED,
};

struct proof {
    enum proof_side side;
    enum proof_state state;
    bool may_send;
    bool wanted;              /* the listener: the dialler wants it, or any worker */
    struct secret *secret;    /* shares; NULL: none */
    struct proof_hello hello; /* the dialler's */
    struct proof_party_text me, peer;
    struct proof_party peer_view;   /* borrows from `peer` */
    uint8_t nonce[PROOF_NONCE_LEN]; /* our own */
    uint8_t in[PROOF_RECORD_MAX];   /* a record that has not arrived as a whole */
    size_t in_len;
    uint8_t out[PROOF_RECORD_MAX]; /* room for all that one side can owe at once */
    size_t out_len;
    struct proof_past past; /* all records before the next, for its mac */
    tenrec_error why;       /* in state FAILED */
};

/* ---- records out ---- */

/* Sends a record without a mac, or the head of one with: the caller writes the last bytes. Returns
 * where it begins. */
static uint8_t *proof_put(struct proof *p, const struct proof_record *r, size_t *ret_len)
{
    uint8_t packed[PROOF_RECORD_MAX];
    uint8_t *at = p->out + p->out_len;
    const size_t len = proof_record_pack(r, packed);

    assert(p->out_len + len <= sizeof p->out);
    memset(packed + len - proof_record_mac_len(r->kind), 0, proof_record_mac_len(r->kind));
    memcpy(at, packed, len);
    p->out_len += len;
    *ret_len = len;
    return at;
}

/* Ends the exchange; the first reason stays. Tells the other side `tell`, unless it is 0. */
static tenrec_status proof_end(struct proof *p, enum proof_reason tell, const tenrec_error *why,
                               tenrec_error *err)
{
    const struct proof_record refused = { .kind = PROOF_REFUSED, .reason = tell };
    size_t len;

    p->state = FAILED;
    p->may_send = false;
    p->why = *why;
    if (tell)
        proof_put(p, &refused, &len);
    return fail_with(err, why);
}

static tenrec_status proof_refuse(struct proof *p, enum proof_reason tell, const char *text,
                                  tenrec_error *err)
{
    tenrec_error why;

    tenrec_fail(&why, TENREC_EPERM, "%s", text);
    return proof_end(p, tell, &why, err);
}

static tenrec_status proof_malformed(struct proof *p, const char *text, tenrec_error *err)
{
    tenrec_error why;

    tenrec_fail(&why, TENREC_EPROTOCOL, "malformed proof: %s", text);
    return proof_end(p, PROOF_MALFORMED, &why, err);
}

static tenrec_status proof_put_signed(struct proof *p, const struct proof_record *r,
                                      enum proof_role role, tenrec_error *err)
{
    size_t len;
    uint8_t *at = proof_put(p, r, &len);
    tenrec_error why;

    if (proof_mac(&p->past, role, at, len, at + len - CRYPTO_MAC_BYTES, &why) != TENREC_OK) {
        p->out_len -= len;
        return proof_end(p, 0, &why, err);
    }
    proof_past_add(&p->past, at, len);
    return TENREC_OK;
}

/* ---- records in ---- */

/* Returns true if the party is the wanted one, as far as that is said. A party without a name, such
 * as a tool, is none that is wanted by name. An address differs where a writer of the store has put
 * its own into a member's record, to pass the proof on to that member. */
static bool proof_is_wanted(const struct proof_party_text *party,
                            const struct proof_party_text *wanted)
{
    if (!*wanted->name)
        return true;
    return strcmp(party->name, wanted->name) == 0 &&
           (wanted->rank < 0 || wanted->rank == party->rank) &&
           (!wanted->incarnation || wanted->incarnation == party->incarnation) &&
           (!*wanted->address || strcmp(wanted->address, party->address) == 0);
}

static tenrec_status proof_take_hello(struct proof *p, const struct proof_record *r,
                                      const uint8_t *record, size_t len, tenrec_error *err)
{
    struct proof_record challenge = { .kind = PROOF_CHALLENGE };
    tenrec_error why;

    if (!p->secret)
        return proof_refuse(p, PROOF_HAS_NO_SECRET, proof_reason_text(PROOF_NEEDS_SECRET), err);
    if (!r->hello.has_secret)
        return proof_refuse(p, PROOF_NEEDS_SECRET, "the other side gave no group secret", err);
    if (strcmp(r->hello.purpose, p->hello.purpose) != 0)
        return proof_refuse(p, PROOF_OTHER_PURPOSE, proof_reason_text(PROOF_OTHER_PURPOSE), err);
    if (crypto_draw_public(p->nonce, sizeof p->nonce, &why) != TENREC_OK)
        return proof_end(p, 0, &why, err);
    p->hello = r->hello;
    p->wanted = proof_is_wanted(&p->me, &r->hello.wanted);
    proof_past_add(&p->past, record, len);
    memcpy(challenge.nonce, p->nonce, sizeof challenge.nonce);
    p->state = WAITS_FOR_ANSWER;
    return proof_put_signed(p, &challenge, p->wanted ? ROLE_LISTENER : ROLE_ANOTHER_LISTENER, err);
}

static void proof_complete(struct proof *p, const struct proof_party_text *peer)
{
    p->state = COMPLETE;
    p->may_send = true;
    p->peer = *peer;
    p->peer_view = (struct proof_party){
        .rank = p->peer.rank,
        .incarnation = p->peer.incarnation,
        .name = p->peer.name,
        .address = p->peer.address,
    };
}

static tenrec_status proof_take_answer(struct proof *p, const struct proof_record *r,
                                       const uint8_t *record, size_t len, tenrec_error *err)
{
    const struct proof_record accepted = { .kind = PROOF_ACCEPTED, .party = p->me };
    tenrec_error why;
    bool equal;

    (void)r; /* nothing but its mac */
    if (proof_mac_check(&p->past, ROLE_DIALLER, record, len, &equal, &why) != TENREC_OK)
        return proof_end(p, 0, &why, err);
    if (!equal)
        return proof_refuse(p, PROOF_OTHER_SECRET, proof_reason_text(PROOF_OTHER_SECRET), err);
    if (!p->wanted)
        return proof_refuse(p, PROOF_OTHER_PARTY, "the other side wants another worker", err);
    proof_past_add(&p->past, record, len);
    proof_complete(p, &p->hello.me);
    return proof_put_signed(p, &accepted, ROLE_ACCEPTED, err);
}

static tenrec_status proof_take_challenge(struct proof *p, const struct proof_record *r,
                                          const uint8_t *record, size_t len, tenrec_error *err)
{
    const struct proof_record answer = { .kind = PROOF_ANSWER };
    tenrec_error why;
    bool equal, other = false;
    tenrec_status st;

    if (!p->secret)
        return proof_refuse(p, 0, proof_reason_text(PROOF_NEEDS_SECRET), err);
    if (memcmp(r->nonce, p->nonce, sizeof p->nonce) == 0)
        return proof_malformed(p, "the peer returned our own nonce", err);
    st = proof_mac_check(&p->past, ROLE_LISTENER, record, len, &equal, &why);
    if (st == TENREC_OK && !equal)
        st = proof_mac_check(&p->past, ROLE_ANOTHER_LISTENER, record, len, &other, &why);
    if (st != TENREC_OK)
        return proof_end(p, 0, &why, err);
    if (!equal)
        return other ? proof_refuse(p, PROOF_OTHER_PARTY, proof_reason_text(PROOF_OTHER_PARTY), err)
                     : proof_refuse(p, PROOF_OTHER_SECRET, proof_reason_text(PROOF_OTHER_SECRET),
                                    err);
    proof_past_add(&p->past, record, len);
    p->state = WAITS_FOR_ACCEPTED;
    p->may_send = true;
    return proof_put_signed(p, &answer, ROLE_DIALLER, err);
}

static tenrec_status proof_take_accepted(struct proof *p, const struct proof_record *r,
                                         const uint8_t *record, size_t len, tenrec_error *err)
{
    tenrec_error why;
    bool equal;

    if (proof_mac_check(&p->past, ROLE_ACCEPTED, record, len, &equal, &why) != TENREC_OK)
        return proof_end(p, 0, &why, err);
    if (!equal)
        return proof_refuse(p, PROOF_OTHER_SECRET, proof_reason_text(PROOF_OTHER_SECRET), err);
    if (!proof_is_wanted(&r->party, &p->hello.wanted))
        return proof_refuse(p, PROOF_OTHER_PARTY, proof_reason_text(PROOF_OTHER_PARTY), err);
    proof_complete(p, &r->party);
    return TENREC_OK;
}

typedef tenrec_status proof_step_fn(struct proof *p, const struct proof_record *r,
                                    const uint8_t *record, size_t len, tenrec_error *err);

static const struct {
    enum proof_kind kind;
    proof_step_fn *take;
} proof_steps[] = {
    [WAITS_FOR_HELLO] = { PROOF_HELLO, proof_take_hello },
    [WAITS_FOR_ANSWER] = { PROOF_ANSWER, proof_take_answer },
    [WAITS_FOR_CHALLENGE] = { PROOF_CHALLENGE, proof_take_challenge },
    [WAITS_FOR_ACCEPTED] = { PROOF_ACCEPTED, proof_take_accepted },
};

static tenrec_status proof_take_record(struct proof *p, const uint8_t *record, size_t len,
                                       tenrec_error *err)
{
    struct proof_record r;
    tenrec_error why;

    if (proof_record_unpack(record, len, &r, &why) != TENREC_OK)
        return proof_end(p, PROOF_MALFORMED, &why, err);
    if (r.kind == PROOF_REFUSED)
        return proof_refuse(p, 0, proof_reason_text(r.reason), err);
    if (r.kind != proof_steps[p->state].kind)
        return proof_malformed(p, "a record out of order", err);
    return proof_steps[p->state].take(p, &r, record, len, err);
}

/* Moves bytes of the next record from `in` to p->in. Returns how many; *ret_len is its length once
 * all of it has arrived, else 0. */
static size_t proof_collect(struct proof *p, const uint8_t *in, size_t n, size_t *ret_len,
                            tenrec_status *ret_status, tenrec_error *why)
{
    size_t used = 0;

    for (;;) {
        size_t more;
        *ret_status = proof_record_peek(p->in, p->in_len, ret_len, why);
        if (*ret_status != TENREC_OK || (*ret_len > 0 && *ret_len == p->in_len))
            return used;
        if (used == n) {
            *ret_len = 0;
            return used;
        }
        /* Of the head while that is not complete; p->in never has more. */
        more = (*ret_len > 0 ? *ret_len : PROOF_HEAD_LEN) - p->in_len;
        if (more > n - used)
            more = n - used;
        memcpy(p->in + p->in_len, in + used, more);
        p->in_len += more;
        used += more;
    }
}

tenrec_status proof_take(struct proof *p, const void *in, size_t n, size_t *ret_used,
                         tenrec_error *err)
{
    const uint8_t *at = in;
    tenrec_status st = TENREC_OK;
    tenrec_error why;

    *ret_used = 0;
    while (p->state != COMPLETE && p->state != FAILED && *ret_used < n) {
        size_t len;
        *ret_used += proof_collect(p, at + *ret_used, n - *ret_used, &len, &st, &why);
        if (st != TENREC_OK)
            /* A peer that speaks another protocol gets no answer. */
            return proof_end(p, proof_begins(p->in, p->in_len) ? PROOF_MALFORMED : 0, &why, err);
        if (len == 0)
            return TENREC_OK;
        p->in_len = 0;
        st = proof_take_record(p, p->in, len, err);
        if (st != TENREC_OK)
            return st;
    }
    return p->state == FAILED ? fail_with(err, &p->why) : TENREC_OK;
}

static const enum proof_reason demand_reason[] = {
    [SECURITY_SECRET] = PROOF_NEEDS_SECRET,
    [SECURITY_TLS] = PROOF_NEEDS_TLS,
    [SECURITY_MTLS] = PROOF_NEEDS_MTLS,
};

void proof_demand(struct proof *p, enum security_mode mode)
{
    proof_refuse(p, demand_reason[mode], "the other side began no proof", NULL);
}

enum security_mode proof_demanded(const void *bytes, size_t n)
{
    struct proof_record r;
    size_t len;

    if (proof_record_peek(bytes, n, &len, NULL) != TENREC_OK || len == 0 || len != n ||
        proof_record_unpack(bytes, n, &r, NULL) != TENREC_OK || r.kind != PROOF_REFUSED)
        return SECURITY_NONE;
    for (size_t i = SECURITY_SECRET; i <= SECURITY_MTLS; i++)
        if (demand_reason[i] == r.reason)
            return (enum security_mode)i;
    return SECURITY_NONE;
}

void proof_withdraw(struct proof *p)
{
    p->out_len = 0;
    proof_refuse(p, PROOF_OTHER_NAME, "the other side has another name", NULL);
}

/* ---- the whole ---- */

/* The listener's hello holds its own terms, until it has the dialler's. */
static tenrec_status proof_copy_terms(struct proof *p, const struct proof_terms *terms,
                                      tenrec_error *err)
{
    tenrec_status st = proof_terms_copy(terms, &p->hello, err);

    if (st != TENREC_OK)
        return st;
    p->me = p->hello.me;
    p->secret = terms->secret ? secret_share(terms->secret) : NULL;
    proof_past_init(&p->past, p->secret, p->hello.purpose, terms->binding);
    return TENREC_OK;
}

static tenrec_status proof_dial(struct proof *p, tenrec_error *err)
{
    struct proof_record record = { .kind = PROOF_HELLO };
    tenrec_status st = crypto_draw_public(p->nonce, sizeof p->nonce, err);
    uint8_t *at;
    size_t len;

    if (st != TENREC_OK)
        return st;
    memcpy(p->hello.nonce, p->nonce, sizeof p->nonce);
    record.hello = p->hello;
    at = proof_put(p, &record, &len);
    proof_past_add(&p->past, at, len);
    return TENREC_OK;
}

tenrec_status proof_open(const struct proof_terms *terms, struct proof **ret, tenrec_error *err)
{
    struct proof *p = memory_new(1, sizeof *p);
    tenrec_status st;

    if (!p)
        return memory_fail(err);
    p->side = terms->side;
    p->state = terms->side == PROOF_DIALLER ? WAITS_FOR_CHALLENGE : WAITS_FOR_HELLO;
    st = proof_copy_terms(p, terms, err);
    if (st == TENREC_OK && p->side == PROOF_DIALLER)
        st = proof_dial(p, err);
    if (st == TENREC_OK)
        *ret = p;
    else
        proof_close(p);
    return st;
}

void proof_close(struct proof *p)
{
    if (!p)
        return;
    secret_drop(p->secret);
    crypto_wipe(p, sizeof *p);
    free(p);
}

const void *proof_output(struct proof *p, size_t *ret_len)
{
    *ret_len = p->out_len;
    p->out_len = 0;
    return p->out;
}

bool proof_may_send(const struct proof *p)
{
    return p->may_send;
}

bool proof_is_complete(const struct proof *p)
{
    return p->state == COMPLETE;
}

const struct proof_party *proof_peer(const struct proof *p)
{
    return &p->peer_view;
}

const void *proof_label(const struct proof *p, size_t *ret_len)
{
    *ret_len = p->hello.label_len;
    return p->hello.label;
}
