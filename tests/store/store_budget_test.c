/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that strangers can make the store's server hold: sessions without sockets, whose peers
 * read as the case says. */
#include "../support/test_store.h"

#include "core/base/clock.h"
#include "group/store/bytes.h"
#include "group/store/store_answer.h"
#include "group/store/store_request.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

/* A peer; what it has not read counts for its session. */
struct peer {
    struct store_session *s;
    bool reads;
    size_t unread, got;
    size_t turns;       /* that ended before its requests */
    const char *closed; /* why */
};

static struct store_hub hub;
static size_t most_held;

static void note_held(void)
{
    size_t held = 0;

    for (struct store_session *s = hub.sessions; s; s = s->next)
        held += s->in.len + s->out.len + (s->dead ? 0 : s->unread);
    if (held > most_held)
        most_held = held;
}

static void take(void *arg, const void *data, size_t len)
{
    struct peer *p = arg;

    (void)data;
    p->got += len;
    note_held();
    if (p->reads)
        return;
    p->unread += len;
    store_session_unread(p->s, p->unread);
}

static bool is_full(void *arg)
{
    return ((struct peer *)arg)->unread > MIB;
}

static void note_close(void *arg, const char *why)
{
    ((struct peer *)arg)->closed = why;
}

static void note_behind(void *arg);

static const struct store_session_ops ops = { take, is_full, note_close, note_behind };

static void note_behind(void *arg)
{
    ((struct peer *)arg)->turns++;
}

/* Further turns, until its requests have run. */
static void runs_all(struct peer *p)
{
    for (size_t before = p->turns - 1; before != p->turns && !p->closed;) {
        before = p->turns;
        store_session_resume(p->s);
    }
}

static void begin(void)
{
    most_held = 0;
    assert_int_equal(store_hub_init(&hub, 0), TENREC_OK);
}

static void end(void)
{
    store_hub_finish(&hub);
}

static void peer_comes(struct peer *p, bool reads)
{
    *p = (struct peer){ .s = store_session_new(&hub, &ops, p), .reads = reads };
    assert_non_null(p->s);
    store_session_feed(p->s, "\0\xce\xf7\x85\x3c", 5); /* VALIDATE: the numbers of 2.2 */
}

/* An opcode with a key and a value of `len` bytes, of which `sent` come. */
static void says(struct peer *p, int op, const char *key, size_t len, size_t sent)
{
    struct bytes b = { 0 };
    uint8_t *room;

    bytes_add_u8(&b, (uint8_t)op);
    bytes_add_text(&b, key);
    bytes_add_u64(&b, len);
    assert_non_null(room = bytes_room(&b, sent));
    memset(room, 'v', sent);
    bytes_grew(&b, sent);
    for (size_t at = 0; at < b.len; at += 65536) {
        if (!p->closed)
            store_session_feed(p->s, b.data + at, b.len - at < 65536 ? b.len - at : 65536);
        note_held();
    }
    bytes_free(&b);
}

static void watches(struct peer *p, const char *key)
{
    struct bytes b = { 0 };

    bytes_add_u8(&b, 7); /* WATCH_KEY, of 1.13 only */
    bytes_add_text(&b, key);
    store_session_feed(p->s, b.data, b.len);
    bytes_free(&b);
}

TEST_WITH(watcher_that_does_not_read_is_dropped, begin, end)
{
    struct peer writer, watcher = { .reads = false };

    watcher.s = store_session_new(&hub, &ops, &watcher);
    watches(&watcher, "k");
    peer_comes(&writer, true);
    says(&writer, 1, "k", 8 * MIB, 8 * MIB);
    for (int i = 0; i < 40; i++)
        says(&writer, 9, "k", 1, 1);
    assert_non_null(watcher.closed);
    assert_text_has(watcher.closed, "does not read the changes");
    assert_null(writer.closed);
    assert_true(most_held < 64 * MIB); /* and not 40 times 16 */
    store_session_drop(watcher.s);
    store_session_drop(writer.s);
}

/* All in what one read brought, before the loop can write. */
TEST_WITH(watcher_that_reads_gets_all_changes_of_one_read, begin, end)
{
    struct peer writer, watcher = { .reads = true };
    struct bytes b = { 0 };

    watcher.s = store_session_new(&hub, &ops, &watcher);
    watches(&watcher, "k");
    peer_comes(&writer, true);
    says(&writer, 1, "k", 8 * MIB, 8 * MIB);
    for (int i = 0; i < 40; i++) {
        bytes_add_u8(&b, 9);
        bytes_add_text(&b, "k");
        bytes_add_u64(&b, 1);
        bytes_add_u8(&b, 'v');
    }
    store_session_feed(writer.s, b.data, b.len);
    bytes_free(&b);
    runs_all(&writer);
    assert_null(watcher.closed);
    assert_true(watcher.got > 40 * 16 * MIB);
    assert_true(most_held < 64 * MIB);
    store_session_drop(watcher.s);
    store_session_drop(writer.s);
}

TEST_WITH(list_is_answered_as_its_peer_reads, begin, end)
{
    enum { N = 1000 };
    struct bytes b = { 0 };
    struct peer p;

    peer_comes(&p, false);
    says(&p, 1, "k", MIB, MIB);
    bytes_add_u8(&b, 10); /* MULTI_GET */
    bytes_add_u64(&b, N);
    for (int i = 0; i < N; i++)
        bytes_add_text(&b, "k");
    store_session_feed(p.s, b.data, b.len);
    bytes_free(&b);
    assert_true(p.got < 4 * MIB);
    for (size_t before = 0; before != p.got;) { /* until nothing more comes */
        before = p.got;
        p.unread = 0;
        store_session_unread(p.s, 0);
        store_session_resume(p.s);
    }
    assert_int_equal(p.got, N * (MIB + 8));
    assert_true(most_held < 8 * MIB);
    assert_null(p.closed);
    store_session_drop(p.s);
}

TEST_WITH(sessions_share_one_budget_and_the_largest_session_goes, begin, end)
{
    struct peer big[10], small;

    hub.max_held = 64 * MIB;
    for (int i = 0; i < 10; i++) {
        peer_comes(&big[i], true);
        says(&big[i], 1, "k", 64 * MIB, (size_t)(20 - i) * MIB); /* never whole */
    }
    assert_true(most_held <= 64 * MIB + 65536);
    assert_true(hub.held <= hub.max_held);
    assert_text_has(big[0].closed, "held most");
    peer_comes(&small, true);
    says(&small, 1, "s", 5, 5);
    assert_null(small.closed);
    assert_int_equal(hub.table.n_keys, 1);
    for (int i = 0; i < 10; i++)
        store_session_drop(big[i].s);
    store_session_drop(small.s);
    assert_int_equal(hub.held, 0);
}

TEST_WITH(request_that_does_not_become_whole_ends, begin, end)
{
    const uint64_t now_ns = clock_now_ns(), late_ns = now_ns + 120 * UINT64_C(1000000000);
    struct peer half, idle, waits;

    peer_comes(&half, true);
    peer_comes(&idle, true);
    peer_comes(&waits, true);
    says(&half, 1, "k", 5, 2);
    says(&idle, 1, "k", 5, 5);
    store_session_feed(waits.s, "\6\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0w", 18); /* WAIT */
    store_hub_expire(&hub, now_ns);
    assert_null(half.closed);
    store_hub_expire(&hub, late_ns);
    assert_text_has(half.closed, "not whole after 30 s");
    assert_null(idle.closed);
    assert_null(waits.closed);
    store_session_drop(half.s);
    store_session_drop(idle.s);
    store_session_drop(waits.s);
}

/* Each byte of a long list is parsed once, however the list is cut. */
TEST_WITH(parsing_goes_on_at_the_last_position, begin, end)
{
    struct store_parser parser = { .at = 0 };
    struct store_request r;
    struct bytes b = { 0 };
    const char *why;
    size_t at = 0;

    bytes_add_u8(&b, 11); /* MULTI_SET */
    bytes_add_u64(&b, 1000);
    for (int i = 0; i < 1000; i++) {
        bytes_add_text(&b, "key");
        bytes_add_text(&b, "value");
    }
    for (size_t len = 0; len < b.len; len++) {
        assert_int_equal(store_request_parse(&parser, STORE_DIALECT_2_2, b.data, len, &r, &why),
                         STORE_PARSE_PART);
        assert_true(parser.at >= at && parser.at <= len);
        assert_true(len - parser.at < 8 + 5); /* only the blob that is cut is read again */
        at = parser.at;
    }
    assert_int_equal(store_request_parse(&parser, STORE_DIALECT_2_2, b.data, b.len, &r, &why),
                     STORE_PARSE_WHOLE);
    assert_int_equal(r.n, 1000);
    assert_int_equal(r.len, b.len);
    bytes_free(&b);
}

/* An item of a queue wakes one waiter: a closed connection that is still known may not be it. */
TEST_WITH(push_wakes_a_waiter_that_is_not_closed, begin, end)
{
    static const char wait[] = "\6\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0q";
    struct peer gone, waits, pushes;

    peer_comes(&gone, true);
    peer_comes(&waits, true);
    peer_comes(&pushes, true);
    store_session_feed(gone.s, wait, sizeof wait - 1);
    store_session_feed(waits.s, wait, sizeof wait - 1);
    says(&gone, 1, "k", 2 * MIB, 2 * MIB);
    assert_text_has(gone.closed, "behind a request that still waits");
    says(&pushes, 14, "q", 1, 1);
    assert_int_equal(waits.got, 1);
    store_session_drop(gone.s);
    store_session_drop(waits.s);
    store_session_drop(pushes.s);
}

static size_t put_number(uint8_t *to, uint64_t n)
{
    for (size_t i = 0; i < 8; i++)
        to[i] = (uint8_t)(n >> (8 * i));
    return 8;
}

/* Of what one read brought the last bytes lie beyond the limit. */
TEST_WITH(request_that_goes_on_beyond_its_limit_is_refused, begin, end)
{
    const size_t last = STORE_MAX_REQUEST - 2 * STORE_MAX_VALUE - 9 - 3 * 17;
    const size_t value[] = { STORE_MAX_VALUE, STORE_MAX_VALUE, last, STORE_MAX_VALUE };
    uint8_t *data = calloc(STORE_MAX_REQUEST + 64, 1);
    struct store_parser parser = { .at = 0 };
    struct store_request r;
    const char *why = NULL;
    size_t at = 0;

    assert_non_null(data);
    data[at++] = 11; /* MULTI_SET, of four keys */
    at += put_number(data + at, 4);
    for (size_t i = 0; i < 4; i++) {
        at += put_number(data + at, 1) + 1; /* a key of one byte */
        at += put_number(data + at, value[i]);
        at += i < 3 ? value[i] : 0;
    }
    assert_int_equal(at, STORE_MAX_REQUEST + 17);
    assert_int_equal(store_request_parse(&parser, STORE_DIALECT_2_2, data, at, &r, &why),
                     STORE_PARSE_BAD);
    assert_text_has(why, "longer than 160 MiB");
    free(data);
}

/* ---- computing ---------------------------------------------------------------------- */

static void add_key_twice(struct bytes *b)
{
    bytes_add_text(b, "absent");
    bytes_add_text(b, "absent");
}

static void waits_for_one_key(struct peer *p, size_t mentions)
{
    struct bytes b = { 0 };

    bytes_add_u8(&b, 6); /* WAIT */
    bytes_add_u64(&b, mentions);
    for (size_t i = 0; i < mentions / 2; i++)
        add_key_twice(&b);
    store_session_feed(p->s, b.data, b.len);
    bytes_free(&b);
}

/* So many COMPARE_SET of the key, which change nothing. */
static void compares(struct peer *p, size_t times)
{
    struct bytes b = { 0 };

    for (size_t i = 0; i < times; i++) {
        bytes_add_u8(&b, 2);
        bytes_add_text(&b, "absent");
        bytes_add_text(&b, "x");
        bytes_add_text(&b, "y");
    }
    store_session_feed(p->s, b.data, b.len);
    bytes_free(&b);
}

TEST_WITH(wait_has_one_link_for_each_key, begin, end)
{
    struct peer waits, sets;

    peer_comes(&waits, true);
    peer_comes(&sets, true);
    waits_for_one_key(&waits, 10000);
    assert_true(hub.table.bytes < 1000);
    says(&sets, 1, "absent", 1, 1);
    assert_int_equal(waits.got, 1);
    store_session_drop(waits.s);
    store_session_drop(sets.s);
}

TEST_WITH(watcher_has_one_link_for_each_key, begin, end)
{
    struct peer watches_twice = { .reads = true }, sets;

    watches_twice.s = store_session_new(&hub, &ops, &watches_twice);
    watches(&watches_twice, "k");
    watches(&watches_twice, "k");
    peer_comes(&sets, true);
    watches_twice.got = 0;
    says(&sets, 1, "k", 1, 1);
    assert_int_equal(watches_twice.got,
                     1 + 8 + 1 + 8 + 8 + 1); /* one change: kind, key, old, new */
    store_session_drop(watches_twice.s);
    store_session_drop(sets.s);
}

TEST_WITH(change_of_a_key_walks_no_waits, begin, end)
{
    struct peer waits[8], peer;
    uint64_t before;

    for (size_t i = 0; i < 8; i++) {
        peer_comes(&waits[i], true);
        waits_for_one_key(&waits[i], 1000);
    }
    peer_comes(&peer, true);
    before = hub.steps;
    compares(&peer, 2000);
    runs_all(&peer);
    assert_int_equal(peer.got, 2000 * (8 + 1));
    assert_int_equal(hub.walked, 0);
    assert_in_range(hub.steps - before, 2000, 2010);
    for (size_t i = 0; i < 8; i++)
        store_session_drop(waits[i].s);
    store_session_drop(peer.s);
}

TEST_WITH(session_with_many_requests_runs_them_in_turns, begin, end)
{
    struct peer peer;
    size_t got;

    peer_comes(&peer, true);
    compares(&peer, 5000);
    assert_int_equal(peer.turns, 1);
    got = peer.got;
    assert_in_range(got, 1, 1000 * (8 + 1));
    store_session_resume(peer.s);
    assert_int_equal(peer.turns, 2);
    assert_in_range(peer.got - got, 1, 1000 * (8 + 1));
    runs_all(&peer);
    assert_int_equal(peer.got, 5000 * (8 + 1));
    store_session_drop(peer.s);
}

/* Keys of 8 KiB. */
static void sets_long_keys(struct peer *p, int n)
{
    char key[8192];

    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    for (int i = 0; i < n; i++) {
        snprintf(key + 8000, sizeof key - 8000, "%d", i);
        says(p, 1, key, 1, 1);
        runs_all(p);
    }
}

TEST_WITH(list_of_keys_is_answered_as_its_peer_reads, begin, end)
{
    struct peer sets, lists;

    peer_comes(&sets, true);
    sets_long_keys(&sets, 1000);
    peer_comes(&lists, false);
    store_session_feed(lists.s, "\21", 1); /* LIST_KEYS */
    assert_true(lists.got < 2 * MIB);
    for (size_t before = 0; before != lists.got;) {
        before = lists.got;
        lists.unread = 0;
        store_session_unread(lists.s, 0);
        store_session_resume(lists.s);
    }
    assert_true(lists.got > 1000 * 8000);
    assert_null(lists.closed);
    store_session_drop(lists.s);
    store_session_drop(sets.s);
}

TEST_WITH(list_of_keys_ends_when_they_change_before_its_peer_reads, begin, end)
{
    struct peer sets, lists;

    peer_comes(&sets, true);
    sets_long_keys(&sets, 500);
    peer_comes(&lists, false);
    store_session_feed(lists.s, "\21", 1);
    says(&sets, 1, "another", 1, 1);
    lists.unread = 0;
    store_session_unread(lists.s, 0);
    store_session_resume(lists.s);
    assert_text_has(lists.closed, "keys came or went");
    store_session_drop(lists.s);
    store_session_drop(sets.s);
}
