/* SPDX-License-Identifier: Apache-2.0 */
/* transfers.c - batches of reads and writes of regions of others (offers.c), whose bytes are
 * checked. */
#include "caller.h"
#include "ledger.h"
#include "offers.h"
#include "soak_functions.h"

enum {
    ENTRIES_MAX = 64,
    PIECES = 12, /* of a part, at most */
    FINISH_MS = 1000,
    FREE_MS = 25000,
    FREE = 0xee, /* the bytes of a buffer that is free again */
    CANCEL_OF = 8,
    FINISH_OF = 8,
};

/* A batch, and its local bytes: the head, the leased blocks, the written block. */
struct transfer {
    struct caller *c;
    struct offer_lease l;
    struct tenrec_tensor *local;
    struct tenrec_bulk entry[ENTRIES_MAX];
    size_t n;
    struct tenrec_future *all, *free, *visible;
    int64_t ms;
    bool reads_head, reads_written;
};

static char *local_at(const struct transfer *t, int64_t offset)
{
    return (char *)tenrec_tensor_data(t->local) + offset;
}

static int64_t blocks_at(const struct transfer *t, int64_t block)
{
    return t->l.head + block * t->l.block;
}

/* ---- entries -------------------------------------------------------------------- */

static void entry_add(struct transfer *t, uint32_t direction, int64_t remote, int64_t local,
                      int64_t bytes)
{
    if (t->n < ENTRIES_MAX)
        t->entry[t->n++] = (struct tenrec_bulk){ .size = sizeof(struct tenrec_bulk),
                                                 .direction = direction,
                                                 .remote = t->l.ref,
                                                 .remote_offset = (uint64_t)remote,
                                                 .bytes = (uint64_t)bytes,
                                                 .local = t->local,
                                                 .local_offset = (uint64_t)local };
}

/* A part in pieces: one, or many that share messages; some have no bytes. */
static void part_add(struct transfer *t, uint32_t direction, int64_t remote, int64_t local,
                     int64_t bytes)
{
    const int64_t pieces = draw(t->c, 2) ? 1 : 1 + draw(t->c, PIECES);
    int64_t done = 0;

    for (int64_t left = pieces; left > 0; left--) {
        const int64_t rest = bytes - done;
        int64_t n = left == 1 ? rest : draw(t->c, (uint32_t)(2 * rest / left) + 1);

        n = n < rest ? n : rest;
        entry_add(t, direction, remote + done, local + done, n);
        done += n;
    }
}

static tenrec_status transfer_new(struct transfer *t, tenrec_error *err)
{
    const int64_t bytes = blocks_at(t, t->l.n + 1);

    t->n = 0;
    return tenrec_tensor_new(TENREC_UINT8, 1, &bytes, &t->local, err);
}

static void add_reads(struct transfer *t)
{
    t->reads_head = draw(t->c, 2);
    t->reads_written = t->l.written >= 0 && draw(t->c, 2);
    if (t->reads_head)
        part_add(t, TENREC_BULK_READ, 0, 0, t->l.head);
    if (t->reads_written)
        part_add(t, TENREC_BULK_READ, blocks_at(t, t->l.written), blocks_at(t, t->l.n), t->l.block);
}

static void add_writes(struct transfer *t, uint64_t id)
{
    const uint64_t bytes = (uint64_t)(t->l.n * t->l.block);

    pattern_fill(local_at(t, t->l.head), id, (uint64_t)blocks_at(t, t->l.first), bytes);
    part_add(t, TENREC_BULK_WRITE, blocks_at(t, t->l.first), t->l.head, (int64_t)bytes);
}

static bool reads_are_right(const struct transfer *t)
{
    if (t->reads_head && !pattern_is(local_at(t, 0), (uint64_t)t->l.owner, 0, (uint64_t)t->l.head))
        return false;
    return !t->reads_written ||
           pattern_is(local_at(t, blocks_at(t, t->l.n)), (uint64_t)t->l.written_by,
                      (uint64_t)blocks_at(t, t->l.written), (uint64_t)t->l.block);
}

/* ---- a batch ------------------------------------------------------------------ */

/* Has the owner revoke it now. */
static void finish(struct transfer *t)
{
    const struct tenrec_call_options o = limited(FINISH_MS);
    uint64_t id = begin(KIND_FINISH, o.timeout_ms);
    struct tenrec_value *ret = NULL;
    tenrec_error err;
    struct tenrec_value arg[] = { tenrec_value_int((int64_t)id), tenrec_value_int(t->l.owner),
                                  tenrec_value_int(1 + draw(t->c, 900)) };
    tenrec_status st =
        tenrec_rpc_sync(t->c->worker, t->l.ref.owner, "finish", arg, 3, &o, &ret, &err);

    if (st == TENREC_OK && (ret->type != TENREC_VALUE_INT || ret->u.integer != mix(id)))
        ledger_note(LEDGER_BAD, id, 0, 0);
    end(id, st, &err);
    tenrec_value_drop(ret);
}

/* Begins the batch, has it perhaps disturbed, and waits for its end. */
static tenrec_status run(struct transfer *t, const struct tenrec_bulk_options *o, tenrec_error *err)
{
    tenrec_status st = tenrec_bulk_async(t->c->worker, t->entry, t->n, o, &t->all, err);

    if (st != TENREC_OK)
        return st;
    if (draw(t->c, CANCEL_OF) == 0)
        tenrec_future_cancel(t->all);
    if (draw(t->c, FINISH_OF) == 0)
        finish(t);
    return tenrec_future_wait(t->all, TENREC_TIMEOUT_NONE, err);
}

static tenrec_status run_with_then(struct transfer *t, uint64_t writer,
                                   struct tenrec_bulk_options *o, tenrec_error *err)
{
    const uint64_t id = begin(KIND_THEN, t->ms + FINISH_MS);
    const struct tenrec_value args[] = { tenrec_value_int((int64_t)id),
                                         tenrec_value_int((int64_t)writer),
                                         tenrec_value_int(t->l.owner), tenrec_value_int(t->l.first),
                                         tenrec_value_int(t->l.n) };
    tenrec_status st;

    o->then = "written";
    o->args = args;
    o->n_args = sizeof args / sizeof args[0];
    st = run(t, o, err);
    end(id, st, err);
    return st;
}

/* From now on the buffer is the program's: what is in it may not be sent, and stays. */
static void free_buffer(struct transfer *t, uint64_t id)
{
    tenrec_error err;

    if (!t->free)
        return;
    if (tenrec_future_wait(t->free, (int64_t)FREE_MS * slow(), &err) != TENREC_OK) {
        fprintf(stderr, "a buffer is not free: %s\n", err.text);
        ledger_note(LEDGER_BAD, id, BAD_FREE, 0);
        return;
    }
    memset(local_at(t, 0), FREE, tenrec_tensor_bytes(t->local));
}

static void transfer_drop(struct transfer *t, uint64_t id)
{
    const unsigned char *at = tenrec_tensor_data(t->local);
    bool good = true;

    for (uint64_t i = 0; t->free && i < tenrec_tensor_bytes(t->local); i++)
        good = good && at[i] == FREE;
    if (!good)
        ledger_note(LEDGER_BAD, id, BAD_LATE, 0);
    tenrec_tensor_drop(t->local);
    tenrec_future_drop(t->all);
    tenrec_future_drop(t->free);
    tenrec_future_drop(t->visible);
}

static tenrec_status write_blocks(struct transfer *t, uint64_t id)
{
    struct tenrec_bulk_options o = { .size = sizeof o, .timeout_ms = t->ms };
    tenrec_error err;
    tenrec_status st = transfer_new(t, &err);

    if (st == TENREC_OK) {
        add_reads(t);
        add_writes(t, id);
        o.ret_free = draw(t->c, 2) ? &t->free : NULL;
        o.ret_visible = draw(t->c, 4) ? NULL : &t->visible;
        st = draw(t->c, 2) ? run(t, &o, &err) : run_with_then(t, id, &o, &err);
    }
    if (st == TENREC_OK && !reads_are_right(t))
        ledger_note(LEDGER_BAD, id, BAD_READ, 0);
    end(id, st, &err);
    free_buffer(t, id);
    return st;
}

/* Reads what `writer` has written. */
static void read_blocks(struct transfer *t, uint64_t writer)
{
    const struct tenrec_bulk_options o = { .size = sizeof o, .timeout_ms = t->ms };
    const uint64_t id = begin(KIND_READ, t->ms + FINISH_MS);
    const int64_t bytes = t->l.n * t->l.block;
    tenrec_error err;
    tenrec_status st = transfer_new(t, &err);

    if (st == TENREC_OK) {
        part_add(t, TENREC_BULK_READ, blocks_at(t, t->l.first), t->l.head, bytes);
        st = run(t, &o, &err);
    }
    if (st == TENREC_OK && !pattern_is(local_at(t, t->l.head), writer,
                                       (uint64_t)blocks_at(t, t->l.first), (uint64_t)bytes))
        ledger_note(LEDGER_BAD, id, BAD_READ, 0);
    end(id, st, &err);
    transfer_drop(t, id);
}

static tenrec_status take_lease(struct transfer *t, uint64_t id, const char *to, int64_t ms,
                                tenrec_error *err)
{
    const struct tenrec_call_options o = limited(ms);
    const struct tenrec_value arg = tenrec_value_int((int64_t)id);
    const struct tenrec_region_ref *ref;
    struct tenrec_value *ret = NULL;
    struct offer_lease *l = &t->l;
    tenrec_status st = tenrec_rpc_sync(t->c->worker, to, "offer", &arg, 1, &o, &ret, err);

    if (st == TENREC_OK)
        st = tenrec_value_unpack(ret->u.array, ret->n, err, "giiiiiii", &ref, &l->owner, &l->head,
                                 &l->block, &l->first, &l->n, &l->written, &l->written_by);
    if (st == TENREC_OK)
        l->ref = *ref;
    tenrec_value_drop(ret);
    return st;
}

void call_write(struct caller *c, const char *to, int64_t ms)
{
    static const int64_t limit[] = { 20, 300, 1000, 3000 };
    struct transfer t = { .c = c, .ms = limit[draw(c, 4)] };
    uint64_t id = begin(KIND_WRITE, ms + t.ms + FINISH_MS);
    tenrec_error err;
    tenrec_status st = take_lease(&t, id, to, ms, &err);

    if (st != TENREC_OK) {
        end(id, st, &err);
        return;
    }
    if (write_blocks(&t, id) == TENREC_OK && draw(c, 2)) {
        struct transfer again = { .c = c, .l = t.l, .ms = t.ms };

        read_blocks(&again, id);
    }
    transfer_drop(&t, id);
}
