/* SPDX-License-Identifier: Apache-2.0 */
#include "conn.h"
#include "send.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/random.h>
#include <tenrec/proof.h>

enum { REFUSED_MS = 1000 }; /* in which the other side may read why, and end the connection */

tenrec_status prove_open(struct ucx *u, tenrec_error *err)
{
    const struct tenrec_proof_service *s = tenrec_proof_service(u->host);
    const enum tenrec_security_mode mode = s ? s->mode(u->self) : TENREC_SECURITY_NONE;

    u->prover = s;
    u->proves = mode != TENREC_SECURITY_NONE;
    if (mode == TENREC_SECURITY_MTLS)
        return tenrec_fail(
            err, TENREC_ECONFIG,
            "its connections show no certificate, which security: { mode: mtls } asks "
            "for: use backend tensorpipe, or security: { mode: secret }");
    if (u->proves && s->admits_plain(u->self, -1))
        u->host->log(u->self, TENREC_LOG_WARN,
                     "security: plain_peers lets no caller in over backend ucx, which cannot "
                     "determine the user of a caller: all must prove the group secret");
    return TENREC_OK;
}

/* ---- cookies --------------------------------------------------------------------------- */

static bool prove_draw_cookie(struct conn *c)
{
    if (getrandom(c->proof.cookie, sizeof c->proof.cookie, 0) == (ssize_t)sizeof c->proof.cookie) {
        c->proof.guarded = true;
        return true;
    }
    conn_break(c, TENREC_EOS, "no random bytes: %s", strerror(errno));
    return false;
}

/* Returns false if the other side announced another one before. */
static bool prove_learn_cookie(struct conn *c, const unsigned char *cookie)
{
    if (c->proof.met)
        return memcmp(c->proof.peer_cookie, cookie, HEAD_COOKIE_LEN) == 0;
    memcpy(c->proof.peer_cookie, cookie, HEAD_COOKIE_LEN);
    c->proof.met = true;
    return true;
}

bool prove_owns(struct conn *c, tenrec_status st, const struct head *h, const tenrec_error *err)
{
    struct ucx *u = c->u;

    if (st == TENREC_OK && head_cookies_match(h->cookie, c->proof.cookie))
        return true;
    if (!c->proof.guarded)
        conn_break(c, TENREC_EPROTOCOL, "%s",
                   st == TENREC_OK ? "a cookie that it was not given" : err->text);
    else if (atomic_fetch_add(&u->strays, 1) == 0)
        u->host->log(
            u->self, TENREC_LOG_WARN,
            "dropped a message that names the connection of %s and is not from there; more "
            "of them are only counted (strays)",
            c->label);
    return false;
}

/* ---- the exchange ---------------------------------------------------------------------- */

void prove_close(struct conn *c)
{
    if (c->proof.open)
        c->u->prover->close(c->u->self, c->proof.open);
    c->proof.open = NULL;
}

/* Returns false if the proof has nothing to say. */
static bool prove_send(struct conn *c)
{
    size_t len = 0;
    const void *out = c->u->prover->output(c->u->self, c->proof.open, &len);

    if (len)
        send_proof(c, out, len);
    return len > 0;
}

/* "10.0.0.2:4711", or "" if UCX does not report it. */
static const char *prove_address(const struct conn *c, char *ret, size_t room)
{
    ucp_ep_attr_t attr = { .field_mask = UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR };
    const struct sockaddr_in *v4 = (const void *)&attr.remote_sockaddr;
    const struct sockaddr_in6 *v6 = (const void *)&attr.remote_sockaddr;
    char host[INET6_ADDRSTRLEN];

    *ret = '\0';
    if (!c->ep || ucp_ep_query(c->ep, &attr) != UCS_OK)
        return ret;
    if (v4->sin_family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host))
        snprintf(ret, room, "%s:%u", host, ntohs(v4->sin_port));
    else if (v6->sin6_family == AF_INET6 && inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host))
        snprintf(ret, room, "[%s]:%u", host, ntohs(v6->sin6_port));
    return ret;
}

/* Sends the reason to the other side, which then closes the connection. A worker without a secret
 * has no reason to send to a callee. */
static void prove_refuse(struct conn *c, const tenrec_error *why)
{
    struct ucx *u = c->u;
    char address[UCX_TEXT];

    if (!c->outgoing) {
        atomic_fetch_add(&u->proofs_refused, 1);
        u->host->log(u->self, TENREC_LOG_WARN, "connection from %s refused: %s",
                     prove_address(c, address, sizeof address), why->text);
    }
    c->proof.refusal = *why;
    c->deadline_ns = clock_now_ns() + REFUSED_MS * UINT64_C(1000000);
    if (!c->proof.open || (!u->proves && c->outgoing) || !prove_send(c))
        conn_break(c, why->code, "%s", why->text);
}

static tenrec_status prove_new(struct conn *c, tenrec_error *err)
{
    const struct tenrec_proof_service *s = c->u->prover;

    if (!s)
        return tenrec_fail(err, TENREC_EPERM, "it asks for a proof of a group secret");
    if (c->outgoing)
        return s->dial(c->u->self, c->peer, NULL, c->proof.cookie, sizeof c->proof.cookie,
                       &c->proof.open, err);
    return s->listen(c->u->self, NULL, &c->proof.open, err);
}

bool prove_dial(struct conn *c)
{
    tenrec_error err;

    if (!c->proof.must_prove)
        return false;
    if (!prove_draw_cookie(c))
        return true;
    if (prove_new(c, &err) == TENREC_OK)
        prove_send(c);
    else
        conn_break(c, err.code, "%s", err.text);
    return true;
}

/* The other side has proved to be `peer`. */
static void prove_end(struct conn *c, const struct tenrec_proved *peer)
{
    c->proof.proved = true;
    c->proof.must_prove = false;
    c->proof.id = peer->id;
    c->proof.incarnation = peer->incarnation;
    prove_send(c);
    prove_close(c);
    if (c->outgoing && c->why.code == TENREC_OK) {
        send_hello(c);
        send_waiting(c);
    }
}

/* Each message of the other side but the last has an answer: records are sent whole. */
static void prove_answer(struct conn *c)
{
    if (!prove_send(c))
        conn_break(c, TENREC_EPROTOCOL, "a part of a record of its proof");
}

static void prove_go_on(struct conn *c, const unsigned char *in, size_t len)
{
    const struct tenrec_proof_service *s = c->u->prover;
    struct tenrec_agent *self = c->u->self;
    struct tenrec_proved peer = { .size = sizeof peer };
    tenrec_error err;
    size_t used = 0;

    if (s->take(self, c->proof.open, in, len, &used, &err) != TENREC_OK)
        prove_refuse(c, &err);
    else if (used != len)
        conn_break(c, TENREC_EPROTOCOL, "%zu bytes behind its proof", len - used);
    else if (!s->proved(self, c->proof.open, &peer))
        prove_answer(c);
    else if (!c->outgoing && (peer.label_len != HEAD_COOKIE_LEN ||
                              memcmp(peer.label, c->proof.peer_cookie, HEAD_COOKIE_LEN) != 0))
        conn_break(c, TENREC_EPROTOCOL,
                   "the label of its proof is not the cookie that it announced");
    else
        prove_end(c, &peer);
}

/* In mode none: the reason, for both sides. */
static void prove_explain(struct conn *c, const unsigned char *in, size_t len)
{
    tenrec_error err;
    tenrec_status st = prove_new(c, &err);
    size_t used;

    if (st == TENREC_OK)
        st = c->u->prover->take(c->u->self, c->proof.open, in, len, &used, &err);
    if (st == TENREC_OK)
        tenrec_fail(&err, TENREC_EPERM,
                    "it demands a proof of a group secret, and this worker has no secret");
    prove_refuse(c, &err);
}

/* To a caller that began no proof. */
static void prove_demand(struct conn *c)
{
    static const unsigned char no_proof[TENREC_PROOF_MAGIC_LEN];
    tenrec_error err;

    if (prove_new(c, &err) == TENREC_OK)
        prove_go_on(c, no_proof, sizeof no_proof);
    else
        conn_break(c, err.code, "%s", err.text);
}

/* Returns true if the callee's side of the proof has arrived. */
static bool prove_listen(struct conn *c)
{
    tenrec_error err;

    if (c->proof.open)
        return true;
    if (!prove_draw_cookie(c))
        return false;
    if (prove_new(c, &err) == TENREC_OK)
        return true;
    conn_break(c, err.code, "%s", err.text);
    return false;
}

bool prove_take(struct conn *c, const struct head *h, const struct bytes *b)
{
    const unsigned char *in = b->data;

    if (c->proof.refusal.code != TENREC_OK)
        return true;
    if (h->kind != HEAD_PROOF && !c->proof.must_prove)
        return false;
    if (h->kind != HEAD_PROOF) {
        if (!c->outgoing && !c->proof.met)
            prove_demand(c);
        else
            conn_break(c, TENREC_EPROTOCOL, "kind %u before the end of its proof", h->kind);
        return true;
    }
    if (c->proof.proved || c->known || h->sequence != c->inbox.sequence || b->how == ANNOUNCED ||
        b->len < HEAD_COOKIE_LEN || b->len > HEAD_COOKIE_LEN + UCX_PROOF_MAX ||
        !prove_learn_cookie(c, in)) {
        conn_break(c, TENREC_EPROTOCOL, "%zu bytes that are no part of a proof", b->len);
        return true;
    }
    c->inbox.sequence++;
    if (!c->proof.must_prove)
        prove_explain(c, in + HEAD_COOKIE_LEN, b->len - HEAD_COOKIE_LEN);
    else if (c->outgoing || prove_listen(c))
        prove_go_on(c, in + HEAD_COOKIE_LEN, b->len - HEAD_COOKIE_LEN);
    return true;
}

/* A tool has no incarnation that counts. */
bool prove_agrees(const struct conn *c, tenrec_peer id, uint64_t incarnation)
{
    if (!c->proof.proved)
        return true;
    return c->proof.id < 0 ? id < 0 : id == c->proof.id && incarnation == c->proof.incarnation;
}
