/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_dial.h"

#include "core/base/clock.h"
#include "group/store/store.h"
#include "security/proof/security.h"

#include <netinet/in.h>

#define RETRY_FIRST_US 2000
#define RETRY_MOST_US 200000
/* A server that closes before its proof may be about to end, or a proxy whose server is about to
 * start. After that time it counts as a server that knows no proof, or no TLS. */
#define PLAIN_MS 3000

/* Returns true if the client proves itself, and demands the same of the server. */
static bool dial_is_closed(const struct store_dial *d)
{
    return d->security && d->security->mode != SECURITY_NONE;
}

static tenrec_status dial_prove(const struct store_dial *d, struct store_conn *c,
                                uint64_t deadline_ns, tenrec_error *err)
{
    if (!dial_is_closed(d))
        return TENREC_OK;
    return d->security->tls ? store_tls_shake(c, d->security, deadline_ns, err)
                            : store_proof_exchange(c, d->security->secret, deadline_ns, err);
}

/* Sends `hello` and reads `len` bytes of answer on a connection of its own. */
static tenrec_status dial_probe(const struct store_dial *d, const uint8_t *hello, size_t hello_len,
                                uint8_t *answer, size_t len, uint64_t deadline_ns,
                                struct store_conn **ret, tenrec_error *err)
{
    struct bytes request = { 0 };
    struct store_conn *c;
    tenrec_status st = store_conn_open(d->address, d->n_addresses, deadline_ns, &c, err);

    if (st != TENREC_OK)
        return st;
    st = dial_prove(d, c, deadline_ns, err);
    if (st != TENREC_OK) {
        store_conn_drop(c);
        return st;
    }
    bytes_add(&request, hello, hello_len);
    st = store_conn_send(c, &request, deadline_ns, err);
    bytes_free(&request);
    if (st == TENREC_OK)
        st = store_conn_read(c, answer, len, deadline_ns, err);
    if (st != TENREC_OK) {
        store_conn_drop(c);
        if (st == TENREC_ETIMEDOUT)
            st = tenrec_fail(err, TENREC_EPROTOCOL,
                             "the server accepts connections but does not answer as a c10d store");
        return st;
    }
    *ret = c;
    return TENREC_OK;
}

/* Detects the request numbers of the server. An older server, which does not know VALIDATE, reads
 * the question as a SET with an absurd key and closes that connection; then a count of keys in the
 * older numbers shows whether it is a store. A server that has proved itself knows VALIDATE. */
static tenrec_status dial_find(struct store_dial *d, uint64_t deadline_ns, struct store_conn **ret,
                               tenrec_error *err)
{
    static const uint8_t newer[] = { 0x00, 0xce, 0xf7, 0x85, 0x3c, 0x0d, 0xff, 0xff, 0xff, 0xff };
    static const uint8_t older[] = { 0x06 };
    uint8_t answer[8];
    tenrec_status st;

    d->dialect = STORE_DIALECT_2_2;
    st = dial_probe(d, newer, sizeof newer, answer, 4, deadline_ns, ret, err);
    if (st == TENREC_OK && bytes_get_u32(answer) != 0xffffffffu) {
        st = store_proof_check_demand(*ret, answer, 4, d->security, deadline_ns, err);
        store_conn_drop(*ret);
        *ret = NULL;
        return st != TENREC_OK ? st
                               : tenrec_fail(err, TENREC_EPROTOCOL,
                                             "the server does not answer as a c10d store");
    }
    if (st != TENREC_EPEER_LOST || dial_is_closed(d))
        return st;
    d->dialect = STORE_DIALECT_1_13;
    return dial_probe(d, older, sizeof older, answer, 8, deadline_ns, ret, err);
}

/* Returns true if the addresses are link-local ones without an interface: the kernel refuses each,
 * at any time. */
static bool dial_lacks_interface(const struct store_dial *d)
{
    for (size_t i = 0; i < d->n_addresses; i++) {
        const struct sockaddr_in6 *v6 = (const void *)&d->address[i].addr;

        if (v6->sin6_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ||
            v6->sin6_scope_id)
            return false;
    }
    return true;
}

/* Attempts once: resolve the host, connect, detect the dialect. */
static tenrec_status dial_attempt(struct store_dial *d, const char *host, uint16_t port,
                                  uint64_t deadline_ns, struct store_conn **ret, tenrec_error *err)
{
    tenrec_status st = resolve_host(host, port, deadline_ns, d->address, &d->n_addresses, err);

    if (st != TENREC_OK)
        return st;
    if (dial_lacks_interface(d))
        return tenrec_fail(err, TENREC_EINVAL,
                           "link-local address %s needs %%interface, as in fe80::1%%eth0", host);
    return dial_find(d, deadline_ns, ret, err);
}

tenrec_status store_dial_open(struct store_dial *d, const char *host, uint16_t port,
                              uint64_t deadline_ns, struct store_conn **ret, tenrec_error *err)
{
    struct backoff pause = { RETRY_FIRST_US, RETRY_MOST_US };
    uint64_t plain_ns = CLOCK_NEVER;
    tenrec_status st;

    do {
        st = dial_attempt(d, host, port, store_answer_ns(deadline_ns), ret, err);
        if (st != TENREC_EPEER_LOST || !dial_is_closed(d))
            plain_ns = CLOCK_NEVER;
        else if (plain_ns == CLOCK_NEVER)
            plain_ns = clock_deadline_ms(PLAIN_MS);
    } while ((st == TENREC_ECONNECT || st == TENREC_EPEER_LOST || st == TENREC_ETIMEDOUT) &&
             !clock_passed(plain_ns) && backoff_take(&pause, deadline_ns));
    return st;
}

tenrec_status store_dial_again(const struct store_dial *d, uint64_t deadline_ns,
                               struct store_conn **ret, tenrec_error *err)
{
    tenrec_status st;

    /* A server with many new connections drops some; an attempt to connect ends before long. */
    do
        st = store_conn_open(d->address, d->n_addresses, deadline_ns, ret, err);
    while (st == TENREC_ETIMEDOUT && !clock_passed(deadline_ns));
    if (st != TENREC_ECONNECT)
        return st;
    if (err)
        err->code = TENREC_EPEER_LOST;
    return TENREC_EPEER_LOST;
}

/* A new connection begins with VALIDATE if the server knows VALIDATE. */
tenrec_status store_dial_greet(const struct store_dial *d, struct store_conn *c,
                               uint64_t deadline_ns, tenrec_error *err)
{
    struct bytes hello = { 0 };
    tenrec_status st = dial_prove(d, c, deadline_ns, err);

    if (st != TENREC_OK || d->dialect != STORE_DIALECT_2_2)
        return st;
    bytes_add_u8(&hello, (uint8_t)store_op_number(d->dialect, STORE_OP_VALIDATE));
    bytes_add_u32(&hello, STORE_MAGIC);
    st = store_conn_send(c, &hello, deadline_ns, err);
    bytes_free(&hello);
    return st;
}
