/* SPDX-License-Identifier: Apache-2.0 */
/* chain_proof.c - fills in the parties of a proof; the exchange is security/proof.h's. */
#include "security/proof/security.h"

#include "core/backend/chain_layer.h"
#include "core/base/memory.h"
#include "core/base/resolve.h"
#include "core/plugin/plugin.h"
#include "security/proof/proof.h"
#include "security/tls/tls.h"

#include <stdlib.h>
#include <string.h>

struct tenrec_proof {
    struct proof *proof;
    struct tls_session *tls; /* borrows; NULL: none */
    bool listens;
    bool begun;   /* the other side has sent a record */
    bool refused; /* it is no member: what waits in `proof` is not sent */
};

/* ---- a chain that proves nothing ---------------------------------------------- */

static const struct security *security_of(const struct tenrec_agent *self)
{
    return (const struct security *)((const struct link *)self)->chain->id.guard;
}

static tenrec_status guard_check(const struct chain_guard *g, const struct tenrec_plugin *innermost,
                                 const char *address, tenrec_error *err)
{
    const struct security *s = (const struct security *)g;

    if (s->mode != SECURITY_NONE && strlen(address) > PROOF_ADDRESS_MAX)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "the address of plugin '%s' takes %zu bytes; a proof has room for %d",
                           innermost->name, strlen(address), PROOF_ADDRESS_MAX);
    if (s->mode == SECURITY_NONE || this_host_has(address) ||
        (innermost->flags & TENREC_PLUGIN_LOOPBACK_ONLY))
        return TENREC_OK;
    if (s->mode > SECURITY_SECRET && !(innermost->flags & TENREC_PLUGIN_ENCRYPTS))
        return tenrec_fail(err, TENREC_ECONFIG,
                           "plugin '%s' encrypts nothing, and listens at \"%s\", beyond loopback, "
                           "while security is in mode %s (%s): use a backend that does, or "
                           "security: { mode: secret }",
                           innermost->name, address, security_mode_name(s->mode), s->mode_source);
    if (innermost->flags & TENREC_PLUGIN_PROVES)
        return TENREC_OK;
    return tenrec_fail(
        err, TENREC_ECONFIG,
        "plugin '%s' does not check that its peers belong to the group, and other "
        "hosts may reach its address \"%s\", while security is in mode %s (%s): let it "
        "listen on loopback or on a socket of this host (\"SCHEME://@NAME\", "
        "\"SCHEME:///PATH\"), use a backend that proves, or set security: { mode: "
        "none }",
        innermost->name, address, security_mode_name(s->mode), s->mode_source);
}

/* ---- the service ---------------------------------------------------------------- */

static struct chain *chain_of(const struct tenrec_agent *self)
{
    return ((const struct link *)self)->chain;
}

/* What backends see is what the room of the proof does. */
_Static_assert((int)TENREC_SECURITY_NONE == SECURITY_NONE &&
                   (int)TENREC_SECURITY_SECRET == SECURITY_SECRET &&
                   (int)TENREC_SECURITY_TLS == SECURITY_TLS &&
                   (int)TENREC_SECURITY_MTLS == SECURITY_MTLS,
               "equal modes");
_Static_assert(TENREC_PROOF_LABEL_MAX == PROOF_LABEL_MAX, "equal labels");

static enum tenrec_security_mode guard_mode(const struct chain_guard *g)
{
    return (enum tenrec_security_mode)((const struct security *)g)->mode;
}

static enum tenrec_security_mode service_mode(const struct tenrec_agent *self)
{
    return (enum tenrec_security_mode)security_of(self)->mode;
}

static bool service_peer_is_ours(const struct tenrec_agent *self, int fd)
{
    tenrec_error why;

    (void)self;
    return plain_socket_check(PLAIN_SAME_USER, fd, &why) == TENREC_OK;
}

static bool service_admits_plain(const struct tenrec_agent *self, int fd)
{
    const struct security *s = security_of(self);
    tenrec_error why;

    if (s->mode == SECURITY_NONE)
        return true;
    return fd < 0 ? s->plain_peers != PLAIN_NONE
                  : plain_socket_check(s->plain_peers, fd, &why) == TENREC_OK;
}

/* With certificates the value of the session is the secret of this one proof: its holder has shown
 * a certificate, and the proof says what for. */
static tenrec_status proof_bind(const struct security *s, struct tls_session *tls,
                                uint8_t binding[PROOF_BINDING_BYTES], struct proof_terms *terms,
                                struct secret **ret_own, tenrec_error *err)
{
    tenrec_status st = tls_session_binding(tls, binding, err);

    terms->binding = binding;
    if (st != TENREC_OK || s->mode != SECURITY_MTLS)
        return st;
    st = secret_new(binding, PROOF_BINDING_BYTES, ret_own, err);
    terms->secret = *ret_own;
    return st;
}

static tenrec_status proof_begin(const struct tenrec_agent *self, struct tenrec_tls *tls,
                                 struct proof_terms *terms, struct tenrec_proof **ret,
                                 tenrec_error *err)
{
    const struct security *s = security_of(self);
    const struct chain *c = chain_of(self);
    struct tenrec_proof *p = memory_new(1, sizeof *p);
    uint8_t binding[PROOF_BINDING_BYTES];
    struct secret *own = NULL;
    tenrec_status st = TENREC_OK;

    if (!p)
        return memory_fail(err);
    /* Both ends have the same plugin: a proof made for another serves no connection of this. */
    terms->purpose = plugin_description(((const struct link *)self)->backend)->name;
    if (!terms->secret)
        terms->secret = s->secret;
    terms->me = (struct proof_party){ c->id.me, c->id.incarnation, c->id.name, c->address };
    p->listens = terms->side == PROOF_LISTENER;
    p->tls = tls ? chain_tls_session(tls) : NULL;
    if (tls)
        st = proof_bind(s, p->tls, binding, terms, &own, err);
    if (st == TENREC_OK)
        st = proof_open(terms, &p->proof, err);
    terms->binding = NULL; /* copied: it ends here */
    secret_drop(own);
    explicit_bzero(binding, sizeof binding);
    if (st == TENREC_OK)
        *ret = p;
    else
        free(p);
    return st;
}

static tenrec_status service_dial(const struct tenrec_agent *self, tenrec_peer to,
                                  struct tenrec_tls *tls, const void *label, size_t label_len,
                                  struct tenrec_proof **ret, tenrec_error *err)
{
    struct proof_terms terms = { .side = PROOF_DIALLER, .label = label, .label_len = label_len };
    struct chain_member member;
    tenrec_status st = TENREC_OK;

    if (!chain_members_find(&chain_of(self)->members, to, &member))
        return tenrec_fail(err, TENREC_EPEER_UNKNOWN, "no member %d", (int)to);
    /* Before the first word: the wrong listener learns nothing, and is not waited for. */
    if (tls)
        st = tls_session_check_name(chain_tls_session(tls), member.name, err);
    if (st != TENREC_OK)
        return st;
    terms.secret = member.key;
    terms.peer =
        (struct proof_party){ member.rank, member.incarnation, member.name, member.address };
    return proof_begin(self, tls, &terms, ret, err);
}

static tenrec_status service_listen(const struct tenrec_agent *self, struct tenrec_tls *tls,
                                    struct tenrec_proof **ret, tenrec_error *err)
{
    struct proof_terms terms = { .side = PROOF_LISTENER };

    return proof_begin(self, tls, &terms, ret, err);
}

/* Checks a party whose proof is complete: its certificate, and a dialler's place in the group. */
static tenrec_status proof_check_peer(const struct tenrec_agent *self, struct tenrec_proof *p,
                                      tenrec_error *err)
{
    const struct proof_party *const peer = proof_peer(p->proof);
    tenrec_status st = p->tls ? tls_session_check_name(p->tls, peer->name, err) : TENREC_OK;

    if (st == TENREC_OK && p->listens)
        st = chain_members_check(&chain_of(self)->members, peer->rank, peer->incarnation,
                                 peer->name, err);
    else if (p->listens)
        proof_withdraw(p->proof);
    p->refused = st != TENREC_OK && proof_is_complete(p->proof);
    return st;
}

static tenrec_status service_take(const struct tenrec_agent *self, struct tenrec_proof *p,
                                  const void *in, size_t n, size_t *ret_used, tenrec_error *err)
{
    const bool plain =
        p->listens && !p->begun && n >= TENREC_PROOF_MAGIC_LEN && !tenrec_proof_begins(in);
    tenrec_status st;

    *ret_used = 0;
    if (plain) {
        proof_demand(p->proof, SECURITY_SECRET);
        if (p->tls) /* plain peers go with no mode of TLS */
            return tenrec_fail(err, TENREC_EPERM, "the other side began no proof");
        return tenrec_fail(err, TENREC_EPERM,
                           "the other side gave no proof of the group secret, and security: { "
                           "plain_peers: ... } does not let it in without");
    }
    p->begun = true;
    st = proof_take(p->proof, in, n, ret_used, err);
    if (st != TENREC_OK || !proof_is_complete(p->proof))
        return st;
    return proof_check_peer(self, p, err);
}

static const void *service_output(const struct tenrec_agent *self, struct tenrec_proof *p,
                                  size_t *ret_len)
{
    (void)self;
    *ret_len = 0;
    return p->refused ? NULL : proof_output(p->proof, ret_len);
}

static bool service_proved(const struct tenrec_agent *self, const struct tenrec_proof *p,
                           struct tenrec_proved *ret)
{
    struct tenrec_proved all = { .size = ret->size };
    const struct proof_party *peer;

    (void)self;
    if (p->refused || !proof_is_complete(p->proof))
        return false;
    peer = proof_peer(p->proof);
    all.id = peer->rank;
    all.incarnation = peer->incarnation;
    all.name = peer->name;
    all.label = proof_label(p->proof, &all.label_len);
    memcpy(ret, &all, ret->size < sizeof all ? ret->size : sizeof all);
    return true;
}

static void service_close(const struct tenrec_agent *self, struct tenrec_proof *p)
{
    (void)self;
    if (!p)
        return;
    proof_close(p->proof);
    free(p);
}

static const struct tenrec_proof_service chain_proof_service = {
    .extension = { TENREC_EXTENSION_PROOF, sizeof chain_proof_service,
                   &chain_tls_service.extension },
    .mode = service_mode,
    .admits_plain = service_admits_plain,
    .peer_is_ours = service_peer_is_ours,
    .dial = service_dial,
    .listen = service_listen,
    .take = service_take,
    .output = service_output,
    .proved = service_proved,
    .close = service_close,
};

const struct chain_guard chain_proof_guard = { guard_mode, &chain_proof_service.extension,
                                               guard_check };
