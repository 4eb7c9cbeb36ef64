/* SPDX-License-Identifier: Apache-2.0 */
/* store_tls_test.c - members and plain clients of a store that speaks TLS. */
#include "tls_hand.h"

/* ---- members --------------------------------------------------------------------- */

static void *wait_for_key(void *arg)
{
    tenrec_error err;

    assert_status(tenrec_store_wait(arg, (const char *const[]){ "late" }, 1, TEST_MS, &err), &err);
    return NULL;
}

static void use_several_connections(void)
{
    struct tenrec_store *s;
    pthread_t thread;
    int64_t sum = 0;
    tenrec_error err;

    assert_status(open_with(ours, TEST_MS, &s, &err), &err);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_key, s), 0);
    for (int i = 0; i < 20; i++)
        assert_status(tenrec_store_add(s, "n", 1, TEST_MS, &sum, &err), &err);
    assert_int_equal(sum, 20);
    assert_status(tenrec_store_set(s, "late", "x", 1, TEST_MS, &err), &err);
    pthread_join(thread, NULL);
    tenrec_store_close(s);
}

/* A wait keeps its connection busy: the other operations dial, and shake hands, again. */
TEST_WITH(members_use_a_store_over_tls_on_several_connections, tls_site_make, tls_site_remove)
{
    for (int mode = 0; mode < MODES; mode++) {
        start_in(mode, PLAIN_NONE);
        use_several_connections();
        stop();
    }
}

TEST_WITH(value_of_many_records_comes_back_over_tls, tls_site_make, tls_site_remove)
{
    enum { LEN = (5 << 20) + 3 };
    unsigned char *data = malloc(LEN);
    struct tenrec_store *s;
    void *got;
    size_t len;
    tenrec_error err;

    assert_non_null(data);
    for (size_t i = 0; i < LEN; i++)
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    for (int mode = 0; mode < MODES; mode++) {
        start_in(mode, PLAIN_NONE);
        assert_status(open_with(ours, TEST_MS, &s, &err), &err);
        for (int i = 0; i < 3; i++) {
            assert_status(tenrec_store_set(s, "big", data, LEN, TEST_MS, &err), &err);
            assert_status(tenrec_store_get(s, "big", TEST_MS, &got, &len, &err), &err);
            assert_int_equal(len, LEN);
            assert_memory_equal(got, data, LEN);
            free(got);
        }
        tenrec_store_close(s);
        stop();
    }
    free(data);
}

/* Appends SET of "/p" with so many bytes, which has no answer. */
static void add_set(char **at, size_t bytes)
{
    *at += unhex("01" K("70"), (unsigned char *)*at);
    memcpy(*at, &(uint64_t){ bytes }, 8);
    *at += 8 + bytes;
}

/* More requests in one segment than the server decrypts at once: the answers to the first pause it,
 * with the last in its TLS session. No byte comes later that would wake it. */
static void say_more_than_a_record(struct hand *h, int gets)
{
    enum { TOTAL = 60 << 10 };
    char *const text = calloc(1, TOTAL), *at = text;
    const struct iovec out = { text, TOTAL };

    assert_non_null(text);
    for (int i = 0; i < gets; i++)
        at += unhex("03" K("6b"), (unsigned char *)at);
    add_set(&at, (size_t)(text + TOTAL - at) - 19 - 5);
    at += unhex(PING, (unsigned char *)at);
    assert_ptr_equal(at, text + TOTAL);
    assert_int_equal(tls_session_write(h->tls, &out, 1), TOTAL);
    hand_send(h);
    free(text);
}

TEST_WITH(answers_that_were_left_unread_all_come_over_tls, tls_site_make, tls_site_remove)
{
    enum { LEN = 1 << 20, GETS = 24, ROUNDS = 3 };
    char *data = calloc(1, LEN);
    unsigned char head[8];
    struct tenrec_store *s;
    struct hand h;
    tenrec_error err;

    assert_non_null(data);
    start_in(TLS, PLAIN_NONE);
    h = member();
    assert_status(open_with(ours, TEST_MS, &s, &err), &err);
    assert_status(tenrec_store_set(s, "k", data, LEN, TEST_MS, &err), &err);
    /* Its first read may be shorter at times. */
    for (int round = 0; round < ROUNDS; round++) {
        say_more_than_a_record(&h, GETS);
        for (int i = 0; i < GETS; i++) {
            hand_read(&h, head, sizeof head);
            assert_memory_equal(head, "\0\0\x10\0\0\0\0\0", sizeof head);
            hand_read(&h, data, LEN);
        }
        hand_hear(&h, PONG);
    }
    tenrec_store_close(s);
    hand_close(&h);
    stop();
    free(data);
}

/* Each turn ends within a record, and others wait behind it in the server's TLS session. */
TEST_WITH(requests_of_many_turns_are_all_answered_over_tls, tls_site_make, tls_site_remove)
{
    enum { TOTAL = 60 << 10, EACH = 5 };
    unsigned char *text = calloc(1, TOTAL);
    const struct iovec out = { text, TOTAL };
    struct hand h;

    assert_non_null(text);
    start_in(TLS, PLAIN_NONE);
    h = member();
    for (size_t at = 0; at < TOTAL; at += EACH)
        unhex(PING, text + at);
    assert_int_equal(tls_session_write(h.tls, &out, 1), TOTAL);
    hand_send(&h);
    for (size_t i = 0; i < TOTAL / EACH; i++)
        hand_hear(&h, PONG);
    hand_close(&h);
    stop();
    free(text);
}

/* hand_receive searches what comes. */
TEST_WITH(value_is_in_no_byte_of_the_wire, tls_site_make, tls_site_remove)
{
    unsigned char got[sizeof MARKER - 1];
    struct tenrec_store *s;
    struct hand h;
    tenrec_error err;

    for (int mode = 0; mode < MODES; mode++) {
        start_in(mode, PLAIN_NONE);
        assert_status(open_with(ours, TEST_MS, &s, &err), &err);
        assert_status(tenrec_store_set(s, "m", MARKER, sizeof got, TEST_MS, &err), &err);
        h = member();
        hand_say(&h, "03" K("6d"));
        hand_hear(&h, "2000000000000000");
        hand_read(&h, got, sizeof got);
        assert_memory_equal(got, MARKER, sizeof got);
        assert_true(h.n_received > sizeof got);
        hand_close(&h);
        tenrec_store_close(s);
        stop();
    }
}

static void *add_some(void *arg)
{
    struct tenrec_store *s;
    int64_t sum;
    tenrec_error err;

    (void)arg;
    assert_status(open_with(ours, TEST_MS, &s, &err), &err);
    for (int i = 0; i < 10; i++)
        assert_status(tenrec_store_add(s, "sum", 1, TEST_MS, &sum, &err), &err);
    tenrec_store_close(s);
    return NULL;
}

TEST_WITH(many_members_come_at_once_over_tls, tls_site_make, tls_site_remove)
{
    enum { MANY = 48 };
    pthread_t thread[MANY];
    struct tenrec_store *s;
    int64_t sum;
    tenrec_error err;

    for (int mode = 0; mode < MODES; mode++) {
        start_in(mode, PLAIN_NONE);
        for (int i = 0; i < MANY; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, add_some, NULL), 0);
        for (int i = 0; i < MANY; i++)
            pthread_join(thread[i], NULL);
        assert_status(open_with(ours, TEST_MS, &s, &err), &err);
        assert_status(tenrec_store_add(s, "sum", 0, TEST_MS, &sum, &err), &err);
        assert_int_equal(sum, 10 * MANY);
        tenrec_store_close(s);
        stop();
    }
}

/* Each byte of the handshake in a segment of its own. */
TEST_WITH(member_that_sends_slowly_is_admitted, tls_site_make, tls_site_remove)
{
    for (int mode = 0; mode < MODES; mode++) {
        struct hand h;
        tenrec_status st;
        tenrec_error err;

        start_in(mode, PLAIN_NONE);
        h = hand_begin();
        do {
            size_t len;
            const char *data = tls_session_output(h.tls, &len);
            for (size_t i = 0; i < len; i++)
                assert_int_equal(send(h.fd, data + i, 1, MSG_NOSIGNAL), 1);
            if ((st = tls_session_shake(h.tls, &err)) == TENREC_EAGAIN)
                hand_receive(&h);
        } while (st == TENREC_EAGAIN);
        assert_status(st, &err);
        hand_send(&h);
        hand_say(&h, HELLO);
        hand_hear(&h, "78563412");
        hand_close(&h);
        stop();
    }
}

/* ---- plain clients ------------------------------------------------------------------ */

TEST_WITH(plain_client_is_let_in_to_a_store_over_tls_as_store_plain_says, tls_site_make,
          tls_site_remove)
{
    for (int mode = 0; mode < MODES; mode++) {
        int fd;

        start_in(mode, PLAIN_SAME_USER);
        fd = dial_2_2();
        say(fd, PING);
        hear(fd, PONG);
        close(fd);
        stop();
        start_in(mode, PLAIN_NONE);
        fd = dial();
        say(fd, HELLO);
        is_closed_at_last(fd);
        assert_int_equal(atomic_load(&fed), 0);
        stop();
    }
}

/* ---- clients of other modes ----------------------------------------------------------- */

TEST_WITH(client_of_another_mode_learns_that_of_the_store, tls_site_make, tls_site_remove)
{
    /* PLAIN_ALL: no client that proves anything falls back to a plain one. */
    start_in(TLS, PLAIN_ALL);
    must_be_refused(secured(OURS, PLAIN_ALL), TENREC_EPERM, "in security mode 'tls'");
    must_be_refused(security_in(MTLS, PLAIN_ALL), TENREC_EPERM, "security mode 'mtls'");
    stop();
    start_in(MTLS, PLAIN_ALL);
    must_be_refused(secured(OURS, PLAIN_ALL), TENREC_EPERM, "in security mode 'mtls'");
    must_be_refused(security_in(TLS, PLAIN_ALL), TENREC_EPERM, "security mode 'tls'");
    stop();
    start_in(TLS, PLAIN_NONE);
    must_be_refused(NULL, TENREC_EPERM,
                    "the store is in security mode 'tls', this process in mode 'none' (default)");
    stop();
    ours = secured(OURS, PLAIN_ALL);
    start_server_with(ours);
    for (int mode = 0; mode < MODES; mode++)
        must_be_refused(security_in(mode, PLAIN_ALL), TENREC_EPERM,
                        "the store is in security mode 'secret', this process in mode '");
    stop();
}

/* The store of torch closes at the first byte of TLS, as ours in mode none does. */
TEST_WITH(client_over_tls_falls_back_to_no_plain_store, tls_site_make, tls_site_remove)
{
    start_server();
    for (int mode = 0; mode < MODES; mode++) {
        struct security *mine = security_in(mode, PLAIN_ALL);
        struct tenrec_store *s = NULL;
        tenrec_error err;

        assert_int_equal(open_with(mine, 200, &s, &err), TENREC_EPEER_LOST);
        assert_text_has(err.text, "the store speaks no TLS, which security mode ");
        assert_null(s);
        security_drop(mine);
    }
    stop_server();
}
