/* SPDX-License-Identifier: Apache-2.0 */
/* Regions between two workers, over the backend in argv. */
#include "../testing.h"
#include "region_support.h"

#include "core/tensor/sharing.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/call/serve.h"
#include "rpc/region/regions.h"
#include "rpc/value/codec.h"
#include <tenrec/observe.h>

static struct cluster c;

static void open_two(void)
{
    cluster_open(&c, 2, NULL, NULL);
}

static void close_two(void)
{
    cluster_close(&c, TENREC_GRACEFUL);
}

/* A region of worker1 with bytes of bytes_new(n, 1). */
static struct owned {
    struct tenrec_tensor *memory;
    struct tenrec_region *r;
    struct tenrec_region_ref ref;
} own(int64_t n, uint32_t rights)
{
    struct owned o = { .memory = bytes_new(n, 1) };

    o.r = region_of(c.worker[1], o.memory, rights);
    o.ref = ref_of(o.r);
    return o;
}

static void disown(struct owned *o)
{
    tenrec_error err;

    assert_status(tenrec_region_revoke(o->r, CLUSTER_LONG_MS, &err), &err);
    tenrec_region_drop(o->r);
    tenrec_tensor_drop(o->memory);
}

static struct tenrec_tensor *pin_of(const struct owned *o, uint32_t right)
{
    const struct region_use use = { .life = o->ref.life,
                                    .number = o->ref.number,
                                    .generation = o->ref.generation,
                                    .key = { o->ref.key[0], o->ref.key[1] },
                                    .n = 1,
                                    .part = { { 0, o->ref.length } } };
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    assert_status(region_pin(c.worker[1], 0, &use, right, &t, &err), &err);
    return t;
}

/* ---- registering --------------------------------------------------------------------- */

TEST_WITH(region_describes_its_owner_length_and_rights, open_two, close_two)
{
    struct owned o = own(100, TENREC_REGION_READ);

    assert_int_equal(o.ref.size, sizeof o.ref);
    assert_int_equal(o.ref.length, 100);
    assert_int_equal(o.ref.rights, TENREC_REGION_READ);
    assert_string_equal(o.ref.owner, "worker1");
    assert_true(o.ref.key[0] | o.ref.key[1]);
    disown(&o);
}

TEST_WITH(region_of_its_own_outlives_the_revoke_of_another_of_its_memory, open_two, close_two)
{
    struct owned o = own(100, BOTH);
    struct tenrec_region *other = region_of(c.worker[1], o.memory, TENREC_REGION_OWN | BOTH);
    struct tenrec_region_ref ref = ref_of(other);
    struct tenrec_tensor *to = bytes_new(100, 0);
    struct tenrec_bulk e = reading(&ref, 0, 100, to, 0);
    tenrec_error err;

    assert_ptr_not_equal(o.r, other);
    assert_int_equal(ref.rights, BOTH);
    assert_int_not_equal(ref.number, o.ref.number);
    disown(&o);
    assert_status(transfer(c.worker[0], &e, 1, &err), &err);
    assert_true(bytes_are(to, 0, 100, 1));
    assert_status(tenrec_region_revoke(other, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(transfer(c.worker[0], &e, 1, &err), TENREC_ESTALE);
    tenrec_region_drop(other);
    tenrec_tensor_drop(to);
}

TEST_WITH(region_is_the_same_when_its_memory_is_registered_twice, open_two, close_two)
{
    struct owned o = own(100, BOTH);
    struct tenrec_region *again = region_of(c.worker[1], o.memory, BOTH), *other = NULL;
    struct tenrec_tensor *to = bytes_new(100, 0);
    struct tenrec_bulk e = reading(&o.ref, 0, 100, to, 0);
    tenrec_error err;

    assert_ptr_equal(again, o.r);
    assert_int_equal(tenrec_region_new(c.worker[1], o.memory, TENREC_REGION_READ, &other, &err),
                     TENREC_EEXIST);
    assert_null(other);
    tenrec_region_drop(again);
    assert_status(transfer(c.worker[0], &e, 1, &err), &err);
    disown(&o);
    tenrec_tensor_drop(to);
}

TEST_WITH(region_refuses_rights_and_tensors_that_it_cannot_have, open_two, close_two)
{
    struct tenrec_tensor *t = bytes_new(8, 0), *empty = bytes_new(0, 0);
    struct tenrec_region *r;
    tenrec_error err;

    assert_int_equal(tenrec_region_new(c.worker[1], t, 0, &r, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_region_new(c.worker[1], t, 4, &r, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_region_new(c.worker[1], NULL, BOTH, &r, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_region_new(c.worker[1], empty, BOTH, &r, &err), TENREC_EINVAL);
    tenrec_tensor_drop(empty);
    tenrec_tensor_drop(t);
}

static bool info_has(const char *key, const char *text)
{
    const struct tenrec_value *found;
    struct tenrec_value *v = NULL;
    tenrec_error err;
    bool has;

    assert_status(
        tenrec_worker_inspect(c.worker[1], NULL, TENREC_INSPECT_DEBUG_INFO, NULL, &v, &err), &err);
    found = tenrec_value_find(v, key);
    has = found && found->type == TENREC_VALUE_TEXT && strcmp(found->u.text, text) == 0;
    tenrec_value_drop(v);
    return has;
}

TEST_WITH(region_is_listed_with_its_rights_transfers_and_end, open_two, close_two)
{
    struct owned o, v;
    struct tenrec_tensor *pin;
    tenrec_error err;

    assert_true(info_has("region.list", ""));
    o = own(100, TENREC_REGION_READ);
    v = own(4096, BOTH);
    pin = pin_of(&o, TENREC_REGION_READ);
    assert_int_equal(tenrec_region_revoke(v.r, 1000, &err), TENREC_OK);
    assert_true(info_has("region.list", "0: 100 bytes, read, 1 transfer; "
                                        "1: 4096 bytes, read and write, 0 transfers, revoked"));
    tenrec_tensor_drop(pin);
    disown(&o);
    disown(&v);
    assert_true(info_has("region.list", ""));
}

/* ---- transfers ----------------------------------------------------------------------- */

TEST_WITH(bulk_reads_and_writes_at_offsets, open_two, close_two)
{
    struct owned o = own(1000, BOTH);
    struct tenrec_tensor *to = bytes_new(100, 0), *from = bytes_new(100, 77);
    struct tenrec_bulk read = reading(&o.ref, 500, 10, to, 3);
    struct tenrec_bulk write = writing(&o.ref, 990, 10, from, 90);
    tenrec_error err;

    assert_status(transfer(c.worker[0], &read, 1, &err), &err);
    assert_true(bytes_are(to, 3, 10, 501));
    assert_true(bytes_are(to, 0, 3, 0) && bytes_are(to, 13, 87, 13));
    assert_status(transfer(c.worker[0], &write, 1, &err), &err);
    assert_true(bytes_are(o.memory, 990, 10, 77 + 90));
    assert_true(bytes_are(o.memory, 0, 990, 1));
    assert_int_equal(tenrec_region_pending(o.r), 0);
    disown(&o);
    tenrec_tensor_drop(to);
    tenrec_tensor_drop(from);
}

TEST_WITH(bulk_moves_megabytes_both_ways, open_two, close_two)
{
    const int64_t n = 3 << 20;
    struct owned o = own(n, BOTH);
    struct tenrec_tensor *to = bytes_new(n, 0), *from = bytes_new(n, 9);
    struct tenrec_bulk read = reading(&o.ref, 1, (uint64_t)n - 1, to, 0);
    struct tenrec_bulk write = writing(&o.ref, 0, (uint64_t)n, from, 0);
    tenrec_error err;

    assert_status(transfer(c.worker[0], &read, 1, &err), &err);
    assert_true(bytes_are(to, 0, (uint64_t)n - 1, 2));
    assert_status(transfer(c.worker[0], &write, 1, &err), &err);
    assert_true(bytes_are(o.memory, 0, (uint64_t)n, 9));
    disown(&o);
    tenrec_tensor_drop(to);
    tenrec_tensor_drop(from);
}

TEST_WITH(bulk_of_a_thousand_entries_ends_once, open_two, close_two)
{
    enum { N = 1000, EACH = 16 };
    struct owned o = own(N * EACH, BOTH);
    struct tenrec_tensor *to = bytes_new(N * EACH, 0), *from = bytes_new(N * EACH, 5);
    struct tenrec_bulk *e = calloc(N, sizeof *e);
    tenrec_error err;

    for (size_t i = 0; i < N; i++)
        e[i] = reading(&o.ref, i * EACH, EACH, to, i * EACH);
    assert_status(transfer(c.worker[0], e, N, &err), &err);
    assert_true(bytes_are(to, 0, N * EACH, 1));
    for (size_t i = 0; i < N; i++)
        e[i] = writing(&o.ref, i * EACH, EACH, from, i * EACH);
    assert_status(transfer(c.worker[0], e, N, &err), &err);
    assert_true(bytes_are(o.memory, 0, N * EACH, 5));
    free(e);
    disown(&o);
    tenrec_tensor_drop(to);
    tenrec_tensor_drop(from);
}

/* Several messages for each region and direction, of which each names its entries. */
TEST_WITH(bulk_of_blocks_of_two_regions_moves_each_to_its_place, open_two, close_two)
{
    enum { N = 300, EACH = 5000 };
    struct owned o = own(N * EACH, BOTH), v = own(N * EACH, BOTH);
    struct tenrec_tensor *to = bytes_new(N * EACH, 0), *from = bytes_new(N * EACH, 9);
    struct tenrec_bulk *e = calloc(N, sizeof *e);
    tenrec_error err;

    for (uint64_t i = 0; i < N; i++) {
        const uint64_t at = i * 7 % N * EACH;
        e[i] = i % 100 < 60 ? reading(&o.ref, at, EACH - i, to, at)
                            : writing(&v.ref, at, EACH - i, from, at);
    }
    assert_status(transfer(c.worker[0], e, N, &err), &err);
    for (uint64_t i = 0; i < N; i++) {
        const struct tenrec_tensor *t = i % 100 < 60 ? to : v.memory;
        const uint64_t at = e[i].local_offset;
        assert_true(bytes_are(t, at, EACH - i, (unsigned)at + (i % 100 < 60 ? 1 : 9)));
        assert_true(
            bytes_are(t, at + EACH - i, i, (unsigned)(at + EACH - i) + (i % 100 < 60 ? 0 : 1)));
    }
    free(e);
    disown(&o);
    disown(&v);
    tenrec_tensor_drop(to);
    tenrec_tensor_drop(from);
}

TEST_WITH(bulk_without_bytes_is_done, open_two, close_two)
{
    struct owned o = own(10, BOTH);
    struct tenrec_tensor *t = bytes_new(10, 0);
    struct tenrec_bulk e[] = { reading(&o.ref, 10, 0, t, 10), writing(&o.ref, 0, 0, t, 0) };
    tenrec_error err;

    assert_status(transfer(c.worker[0], e, 2, &err), &err);
    assert_status(transfer(c.worker[0], NULL, 0, &err), &err);
    disown(&o);
    tenrec_tensor_drop(t);
}

TEST_WITH(bulk_reaches_regions_of_its_own_worker, open_two, close_two)
{
    struct owned o = own(64, BOTH);
    struct tenrec_tensor *t = bytes_new(64, 0);
    struct tenrec_bulk e = reading(&o.ref, 0, 64, t, 0);
    tenrec_error err;

    assert_status(transfer(c.worker[1], &e, 1, &err), &err);
    assert_true(bytes_are(t, 0, 64, 1));
    disown(&o);
    tenrec_tensor_drop(t);
}

TEST_WITH(bulk_reads_shared_memory_of_the_owner_as_bytes, open_two, close_two)
{
    const int64_t n = 1 << 20;
    const struct tenrec_tensor_options shared = { .size = sizeof shared, .flags = TENREC_SHARED };
    struct tenrec_tensor *t = NULL, *to = bytes_new(n, 0);
    struct tenrec_region *r;
    struct tenrec_region_ref ref;
    struct tenrec_bulk e;
    tenrec_error err;

    assert_status(tenrec_tensor_new_with(TENREC_UINT8, 1, &n, &shared, &t, &err), &err);
    memset(tenrec_tensor_data(t), 7, (size_t)n);
    r = region_of(c.worker[1], t, BOTH);
    ref = ref_of(r);
    e = reading(&ref, 0, (uint64_t)n, to, 0);
    assert_status(transfer(c.worker[0], &e, 1, &err), &err);
    assert_memory_equal(tenrec_tensor_data(to), tenrec_tensor_data(t), (size_t)n);
    assert_int_equal(sharing_lent(), 0); /* a loan outlives the message */
    assert_status(tenrec_region_revoke(r, CLUSTER_LONG_MS, &err), &err);
    tenrec_region_drop(r);
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(to);
}

/* A loan would let the owner read the memory after its bytes were reported free. */
TEST_WITH(bulk_writes_shared_memory_as_bytes, open_two, close_two)
{
    const int64_t n = 1 << 20;
    const struct tenrec_tensor_options shared = { .size = sizeof shared, .flags = TENREC_SHARED };
    struct owned o = own(n, BOTH);
    struct tenrec_tensor *t = NULL;
    struct tenrec_bulk e;
    tenrec_error err;

    assert_status(tenrec_tensor_new_with(TENREC_UINT8, 1, &n, &shared, &t, &err), &err);
    memset(tenrec_tensor_data(t), 7, (size_t)n);
    e = writing(&o.ref, 0, (uint64_t)n, t, 0);
    assert_status(transfer(c.worker[0], &e, 1, &err), &err);
    assert_memory_equal(tenrec_tensor_data(o.memory), tenrec_tensor_data(t), (size_t)n);
    assert_int_equal(sharing_lent(), 0);
    tenrec_tensor_drop(t);
    disown(&o);
}

/* ---- what is refused before it is sent ------------------------------------------------ */

TEST_WITH(bulk_names_the_entry_that_it_refuses, open_two, close_two)
{
    struct owned o = own(100, BOTH);
    struct tenrec_tensor *t = bytes_new(100, 0);
    struct tenrec_bulk good = reading(&o.ref, 0, 10, t, 0), e[3];
    struct tenrec_future *f;
    tenrec_error err;

    e[0] = good;
    e[1] = reading(&o.ref, 91, 10, t, 20);
    assert_int_equal(tenrec_bulk_async(c.worker[0], e, 2, NULL, &f, &err), TENREC_EINVAL);
    assert_text_has(err.text, "entry 1: 10 bytes at 91: the region has 100");
    e[1] = reading(&o.ref, 0, 10, t, UINT64_MAX);
    assert_int_equal(tenrec_bulk_async(c.worker[0], e, 2, NULL, &f, &err), TENREC_EINVAL);
    assert_text_has(err.text, "entry 1: 10 bytes at 18446744073709551615: the local tensor");
    e[1] = reading(&o.ref, 50, 10, t, 50);
    strcpy(e[1].remote.owner, "worker7");
    assert_int_equal(tenrec_bulk_async(c.worker[0], e, 2, NULL, &f, &err), TENREC_EPEER_UNKNOWN);
    assert_text_has(err.text, "entry 1");
    e[1] = reading(&o.ref, 50, 10, NULL, 0);
    assert_int_equal(tenrec_bulk_async(c.worker[0], e, 2, NULL, &f, &err), TENREC_EINVAL);
    assert_null(f);
    disown(&o);
    tenrec_tensor_drop(t);
}

TEST_WITH(bulk_refuses_targets_that_overlap, open_two, close_two)
{
    struct owned o = own(100, BOTH);
    struct tenrec_tensor *t = bytes_new(100, 0);
    struct tenrec_bulk reads[] = { reading(&o.ref, 0, 10, t, 20), reading(&o.ref, 0, 10, t, 0),
                                   reading(&o.ref, 0, 10, t, 29) };
    struct tenrec_bulk writes[] = { writing(&o.ref, 0, 10, t, 0), writing(&o.ref, 9, 1, t, 50) };
    struct tenrec_bulk beside[] = { writing(&o.ref, 0, 10, t, 0), writing(&o.ref, 10, 10, t, 0) };
    struct tenrec_future *f;
    tenrec_error err;

    assert_int_equal(tenrec_bulk_async(c.worker[0], reads, 3, NULL, &f, &err), TENREC_EINVAL);
    assert_text_has(err.text, "entry 2: its target overlaps that of entry 0");
    assert_int_equal(tenrec_bulk_async(c.worker[0], writes, 2, NULL, &f, &err), TENREC_EINVAL);
    assert_text_has(err.text, "entry 1: its target overlaps that of entry 0");
    assert_status(transfer(c.worker[0], beside, 2, &err), &err);
    disown(&o);
    tenrec_tensor_drop(t);
}

/* ---- what the owner refuses ------------------------------------------------------------ */

static void expect_refused(const struct tenrec_region_ref *ref, bool writes, tenrec_status st,
                           const char *text)
{
    struct tenrec_tensor *t = bytes_new(64, 99);
    struct tenrec_bulk e = writes ? writing(ref, ref->length - 64, 64, t, 0)
                                  : reading(ref, ref->length - 64, 64, t, 0);
    tenrec_error err;

    assert_int_equal(transfer(c.worker[0], &e, 1, &err), st);
    assert_text_has(err.text, "entry 0");
    assert_text_has(err.text, text);
    assert_true(bytes_are(t, 0, 64, 99));
    tenrec_tensor_drop(t);
}

TEST_WITH(region_refuses_forged_references, open_two, close_two)
{
    struct owned o = own(100, TENREC_REGION_READ), v = own(100, TENREC_REGION_WRITE);
    struct tenrec_region_ref ref;

    for (int writes = 0; writes < 2; writes++) {
        ref = writes ? v.ref : o.ref;
        ref.key[1] ^= 1;
        expect_refused(&ref, writes, TENREC_EPERM, "key");
        ref = writes ? v.ref : o.ref;
        ref.length = 101;
        expect_refused(&ref, writes, TENREC_EINVAL, "64 bytes at 37: the region has 100");
        ref.length = UINT64_MAX;
        expect_refused(&ref, writes, TENREC_EINVAL, "the region has 100");
        ref = writes ? v.ref : o.ref;
        ref.number = UINT64_MAX;
        expect_refused(&ref, writes, TENREC_ENOTFOUND, "no region has the number");
        ref = writes ? v.ref : o.ref;
        ref.life++;
        expect_refused(&ref, writes, TENREC_ESTALE, "former life");
        ref = writes ? o.ref : v.ref; /* the right of the other */
        ref.rights = BOTH;
        expect_refused(&ref, writes, TENREC_EPERM, writes ? "written" : "read");
    }
    assert_true(bytes_are(o.memory, 0, 100, 1) && bytes_are(v.memory, 0, 100, 1));
    assert_int_equal(tenrec_region_pending(o.r) + tenrec_region_pending(v.r), 0);
    disown(&o);
    disown(&v);
}

TEST_WITH(region_refuses_a_former_generation_of_its_number, open_two, close_two)
{
    struct owned o = own(100, BOTH);
    struct tenrec_region_ref former = o.ref;

    tenrec_region_drop(o.r);
    o.r = region_of(c.worker[1], o.memory, BOTH);
    o.ref = ref_of(o.r);
    assert_int_equal(o.ref.number, former.number);
    assert_int_equal(o.ref.generation, former.generation + 1);
    expect_refused(&former, false, TENREC_ESTALE, "dropped");
    expect_refused(&former, true, TENREC_ESTALE, "dropped");
    assert_true(info_of(c.worker[1], "region.stale") >= 2);
    assert_true(bytes_are(o.memory, 0, 100, 1));
    disown(&o);
}

/* A request of raw parts. */
static tenrec_status ask(int32_t type, const struct tenrec_value *payload, tenrec_error *err)
{
    struct call_spec spec = { .to = 1, .function = "forged" };
    struct tenrec_future *f = NULL;
    struct tenrec_msg *msg;
    tenrec_status st;

    assert_status(codec_write_value(payload, type, &msg, err), err);
    assert_status(worker_enter(c.worker[0], err), err);
    assert_status(call_begin_now(c.worker[0], &spec, CLUSTER_LONG_MS, err), err);
    assert_status(call_send(c.worker[0], &spec, msg, &f, err), err);
    worker_leave(c.worker[0]);
    st = tenrec_future_wait(f, CLUSTER_LONG_MS, err);
    tenrec_future_drop(f);
    return st;
}

TEST_WITH(region_refuses_malformed_messages, open_two, close_two)
{
    static const char large[4096];
    struct owned o = own(100, BOTH);
    const struct tenrec_value seven[8] = { tenrec_value_text("life") };
    const struct tenrec_value nil = { .type = TENREC_VALUE_NIL };
    const struct tenrec_value few = tenrec_value_array(seven, 3);
    const struct tenrec_value texts = tenrec_value_array(seven, 7);
    const struct tenrec_value odd = tenrec_value_array(seven, 8);
    const struct tenrec_value many = tenrec_value_bytes(large, sizeof large);
    const struct tenrec_value *all[] = { &nil, &few, &texts, &odd, &many };
    tenrec_error err;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(ask(TENREC_MSG_BULK_READ, all[i], &err), TENREC_EPROTOCOL);
        assert_int_equal(ask(TENREC_MSG_BULK_WRITE, all[i], &err), TENREC_EPROTOCOL);
    }
    disown(&o);
}

static void answer_without_bytes(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    const struct tenrec_value nil = { .type = TENREC_VALUE_NIL };

    answer_value(w, from, msg->id, &msg->route, TENREC_MSG_RET, &nil);
    msg->release(msg);
}

TEST_WITH(read_fails_when_the_owner_answers_without_the_bytes, open_two, close_two)
{
    struct owned o = own(100, BOTH);
    struct dispatch *d = &c.worker[1]->calls->dispatch;

    for (unsigned i = 0; i < d->n; i++)
        if (d->handler[i].type == TENREC_MSG_BULK_READ)
            d->handler[i].fn = answer_without_bytes;
    expect_refused(&o.ref, false, TENREC_EPROTOCOL, "has not the bytes");
    disown(&o);
}

/* ---- the end of a region ------------------------------------------------------------------ */

TEST_WITH(revoke_ends_an_idle_region_at_once, open_two, close_two)
{
    struct owned o = own(100, BOTH);
    tenrec_error err;

    assert_status(tenrec_region_revoke(o.r, 1, &err), &err);
    expect_refused(&o.ref, false, TENREC_ESTALE, "revoked");
    expect_refused(&o.ref, true, TENREC_ESTALE, "revoked");
    assert_true(info_of(c.worker[1], "region.stale") >= 2);
    assert_int_equal(info_of(c.worker[1], "region.num_regions"), 1);
    disown(&o);
    assert_int_equal(info_of(c.worker[1], "region.num_regions"), 0);
}

TEST_WITH(revoke_names_the_peers_whose_transfers_go_on, open_two, close_two)
{
    struct owned o = own(100, BOTH);
    struct tenrec_tensor *reads = pin_of(&o, TENREC_REGION_READ);
    struct tenrec_tensor *writes = pin_of(&o, TENREC_REGION_WRITE);
    tenrec_error err;

    assert_int_equal(tenrec_region_pending(o.r), 2);
    assert_int_equal(tenrec_region_revoke(o.r, 1, &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "2 transfers");
    assert_text_has(err.text, "'worker0' reads");
    assert_text_has(err.text, "'worker0' writes");
    assert_int_equal(tenrec_region_revoke(o.r, -1, &err), TENREC_EINVAL);
    expect_refused(&o.ref, true, TENREC_ESTALE, "revoked");
    tenrec_tensor_drop(reads);
    tenrec_tensor_drop(writes);
    disown(&o);
}

TEST_WITH(memory_of_a_dropped_region_lives_until_its_transfers_end, open_two, close_two)
{
    struct owned o = own(100, BOTH);
    struct tenrec_tensor *pin = pin_of(&o, TENREC_REGION_READ);

    tenrec_region_drop(o.r);
    tenrec_tensor_drop(o.memory);
    assert_int_equal(info_of(c.worker[1], "region.num_transfers"), 1);
    expect_refused(&o.ref, true, TENREC_ESTALE, "dropped");
    assert_true(bytes_are(pin, 0, 100, 1));
    tenrec_tensor_drop(pin);
    assert_int_equal(info_of(c.worker[1], "region.num_regions"), 0);
}

TEST_WITH(region_may_be_dropped_after_its_worker, open_two, NULL)
{
    struct owned o = own(100, BOTH);
    struct tenrec_tensor *t = bytes_new(100, 0);
    struct tenrec_bulk e = reading(&o.ref, 0, 100, t, 0);
    struct tenrec_future *f;
    tenrec_error err;

    close_two();
    tenrec_region_drop(o.r);
    tenrec_tensor_drop(o.memory);
    open_two();
    assert_status(tenrec_shutdown(c.worker[0], TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(tenrec_bulk_async(c.worker[0], &e, 1, NULL, &f, &err), TENREC_ESHUTDOWN);
    tenrec_worker_drop(c.worker[0]);
    tenrec_worker_drop(c.worker[1]);
    tenrec_tensor_drop(t);
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)
