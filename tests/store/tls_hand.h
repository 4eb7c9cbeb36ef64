/* SPDX-License-Identifier: Apache-2.0 */
/* tls_hand.h - a store in the modes tls and mtls, and a client of it by hand. Linked with
 * --wrap=store_session_feed, which counts the bytes that reach a session. */
#ifndef TENREC_TESTS_STORE_SERVER_TLS_HAND_H
#define TENREC_TESTS_STORE_SERVER_TLS_HAND_H

#include "../support/tls_site.h"
#include "served.h"

#include "core/base/clock.h"
#include "group/store/store.h"
#include "group/store/store_session.h"
#include "security/tls/tls.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define OURS "the secret of this group"
#define OTHER "the secret of another group"
#define PING "0d 07000000"
#define PONG "07000000"
#define MARKER "a text that no stranger may read"

/* ---- what reaches a session ----------------------------------------------------- */

static atomic_size_t fed;

void __real_store_session_feed(struct store_session *s, const void *data, size_t len);
void __wrap_store_session_feed(struct store_session *s, const void *data, size_t len);
void __wrap_store_session_feed(struct store_session *s, const void *data, size_t len)
{
    atomic_fetch_add(&fed, len);
    __real_store_session_feed(s, data, len);
}

/* ---- a store in either mode, and its clients -------------------------------------- */

enum { TLS, MTLS, MODES };

static struct security *ours;

static inline struct security *security_in(int mode, enum security_plain plain)
{
    return mode == TLS ? tls_site_secret(OURS, plain)
                       : tls_site_certificates("ours", "ours", NULL, plain);
}

static inline void start_in(int mode, enum security_plain plain)
{
    ours = security_in(mode, plain);
    start_server_with(ours);
    atomic_store(&fed, 0);
}

static inline void stop(void)
{
    stop_server();
    security_drop(ours);
}

static inline tenrec_status open_with(struct security *security, uint64_t ms,
                                      struct tenrec_store **ret, tenrec_error *err)
{
    return store_tcp_open("127.0.0.1", served_port, security, clock_deadline_ms(ms), ret, err);
}

static inline void must_be_refused(struct security *security, tenrec_status st, const char *text)
{
    struct tenrec_store *s = NULL;
    tenrec_error err = { 0 };

    assert_int_equal(open_with(security, 200, &s, &err), st);
    assert_text_has(err.text, text);
    assert_null(s);
    assert_int_equal(atomic_load(&fed), 0);
    security_drop(security);
}

/* ---- a client by hand ---------------------------------------------------------------- */

struct hand {
    int fd;
    struct tls_session *tls;
    size_t n_received; /* encrypted bytes, searched for the marker */
};

/* Sends what is encrypted. Returns the bytes. */
static inline size_t hand_send(struct hand *h)
{
    size_t len;
    const void *data = tls_session_output(h->tls, &len);

    if (len)
        assert_int_equal(send(h->fd, data, len, MSG_NOSIGNAL), len);
    return len;
}

static inline void hand_receive(struct hand *h)
{
    char in[32 << 10];
    const ssize_t n = recv_again(h->fd, in, sizeof in, 0);
    tenrec_error err;

    assert_true(n > 0);
    assert_null(memmem(in, (size_t)n, MARKER, strlen(MARKER)));
    h->n_received += (size_t)n;
    assert_status(tls_session_feed(h->tls, in, (size_t)n, &err), &err);
}

static inline struct hand hand_begin(void)
{
    struct hand h = { .fd = dial() };
    tenrec_error err;

    assert_status(tls_session_open(ours->tls, -1, TLS_DIALLER, &h.tls, &err), &err);
    assert_int_equal(tls_session_shake(h.tls, &err), TENREC_EAGAIN);
    return h;
}

static inline struct hand hand_open(void)
{
    struct hand h = hand_begin();
    tenrec_status st;
    tenrec_error err;

    hand_send(&h);
    hand_receive(&h);
    while ((st = tls_session_shake(h.tls, &err)) == TENREC_EAGAIN)
        hand_receive(&h);
    assert_status(st, &err);
    hand_send(&h);
    return h;
}

static inline void hand_close(struct hand *h)
{
    tls_session_close(h->tls);
    close(h->fd);
}

static inline void hand_say(struct hand *h, const char *hex)
{
    unsigned char raw[4096];
    const struct iovec out = { raw, unhex(hex, raw) };

    assert_int_equal(tls_session_write(h->tls, &out, 1), out.iov_len);
    hand_send(h);
}

static inline void hand_read(struct hand *h, void *ret, size_t len)
{
    for (size_t at = 0; at < len;) {
        const struct iovec to = { (char *)ret + at, len - at };
        const ssize_t n = tls_session_read(h->tls, &to, 1);
        assert_true(n > 0 || n == -EAGAIN);
        if (n > 0)
            at += (size_t)n;
        else
            hand_receive(h);
    }
}

static inline void hand_hear(struct hand *h, const char *hex)
{
    unsigned char raw[4096], got[4096];
    const size_t n = unhex(hex, raw);

    hand_read(h, got, n);
    assert_memory_equal(got, raw, n);
}

static inline struct hand member(void)
{
    struct hand h = hand_open();

    hand_say(&h, HELLO);
    hand_hear(&h, "78563412");
    atomic_store(&fed, 0);
    return h;
}

static inline void is_closed_at_last(int fd)
{
    char sink[4096];

    shutdown(fd, SHUT_WR);
    while (recv_again(fd, sink, sizeof sink, 0) > 0)
        ;
    is_closed(fd);
}

/* The server has acted on all that came before, and none of it reached a session. */
static inline void only_the_member_was_heard(struct hand *h)
{
    assert_int_equal(atomic_load(&fed), 0);
    hand_say(h, PING);
    hand_hear(h, PONG);
    atomic_store(&fed, 0);
}

#endif
