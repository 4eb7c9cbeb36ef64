/* SPDX-License-Identifier: Apache-2.0 */
/* leases.c - functions by which peers lease blocks of the regions that this worker offers, say that
 * they have written them, and have it revoke one. */
#include "ledger.h"
#include "offers.h"
#include "soak_functions.h"

#include <stdlib.h>

enum {
    OFFERS_MAX = 12,
    LEASE_MAX = 4,
    REGION_BYTES = 4 << 20,
    END_OF = 4, /* leases: the region ends */
};

static int64_t of(const int64_t *all, size_t n, uint64_t *random)
{
    *random = mix(*random);
    return all[*random % n];
}

static void offer_unmade(void)
{
    pthread_mutex_lock(&offers.lock);
    offers.n--;
    pthread_mutex_unlock(&offers.lock);
}

static tenrec_status offer_new(struct tenrec_worker *w, uint64_t random, struct offer **ret,
                               tenrec_error *err)
{
    static const int64_t heads[] = { 64, 4000, 65536, 600000 };
    static const int64_t blocks[] = { 64, 1000, 4096, 40000, 200000, 1000000 };
    struct offer *o = calloc(1, sizeof *o);
    tenrec_status st;
    int64_t bytes;

    if (!o) {
        offer_unmade();
        return tenrec_fail(err, TENREC_ENOMEM, "out of memory");
    }
    o->id = ledger_next();
    ledger_note(LEDGER_START, o->id, KIND_OFFER, 0);
    ledger_note(LEDGER_END, o->id, TENREC_OK, 0);
    o->written = -1;
    o->head = of(heads, 4, &random);
    o->block = of(blocks, 6, &random);
    o->n_blocks = REGION_BYTES / o->block < BLOCKS_MAX ? REGION_BYTES / o->block : BLOCKS_MAX;
    o->end_ms = offers_now_ms() + 100 + (int64_t)(mix(random) % 2000);
    bytes = o->head + o->n_blocks * o->block;
    st = tenrec_tensor_new(TENREC_UINT8, 1, &bytes, &o->memory, err);
    if (st == TENREC_OK) {
        pattern_fill(tenrec_tensor_data(o->memory), o->id, 0, (uint64_t)bytes);
        st = tenrec_region_new(w, o->memory, TENREC_REGION_READ | TENREC_REGION_WRITE, &o->region,
                               err);
    }
    if (st == TENREC_OK) {
        *ret = o;
        return st;
    }
    tenrec_tensor_drop(o->memory);
    free(o);
    offer_unmade();
    return st;
}

/* The lock is held. NULL: none, or a new one is due. */
static struct offer *offer_with_room(uint64_t random)
{
    struct offer *found = NULL;

    for (struct offer *o = offers.first; o; o = o->next)
        if (!o->revoked && o->n_leased < o->n_blocks && (!found || (random = mix(random)) % 2))
            found = o;
    return found;
}

/* The lock is held. */
static struct offer_lease lease(struct offer *o, uint64_t id)
{
    const int64_t left = o->n_blocks - o->n_leased, n = 1 + (int64_t)(mix(id) % LEASE_MAX);
    struct offer_lease l = { .owner = (int64_t)o->id,
                             .head = o->head,
                             .block = o->block,
                             .first = o->n_leased,
                             .n = n < left ? n : left,
                             .written = o->written };

    tenrec_region_describe(o->region, &l.ref);
    l.written_by = o->written < 0 ? 0 : (int64_t)o->writer[o->written];
    for (int64_t i = 0; i < l.n; i++)
        o->writer[o->n_leased++] = id;
    if (mix(id) / LEASE_MAX % END_OF == 0)
        o->end_ms = 0; /* while the holder writes */
    return l;
}

static tenrec_status no_room(tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EAGAIN, "no blocks are left");
}

/* A new offer for some of the calls. Its memory is filled without the lock. */
static tenrec_status make_room(struct tenrec_worker *w, uint64_t id, struct offer **ret,
                               tenrec_error *err)
{
    bool due;

    pthread_mutex_lock(&offers.lock);
    due = !offers.closed && offers.n < OFFERS_MAX && (id % 4 == 0 || !offer_with_room(id));
    offers.n += due;
    pthread_mutex_unlock(&offers.lock);
    *ret = NULL;
    return due ? offer_new(w, id, ret, err) : TENREC_OK;
}

static tenrec_status take_lease(struct tenrec_worker *w, uint64_t id, struct offer_lease *ret,
                                tenrec_error *err)
{
    struct offer *made, *o;
    tenrec_status st = make_room(w, id, &made, err);

    if (st != TENREC_OK)
        return st;
    pthread_mutex_lock(&offers.lock);
    if (made) {
        made->next = offers.first;
        offers.first = made;
    }
    o = offers.closed ? NULL : made ? made : offer_with_room(id);
    if (o)
        *ret = lease(o, id);
    pthread_mutex_unlock(&offers.lock);
    return o ? TENREC_OK : no_room(err);
}

/* "offer": a lease of blocks. */
static tenrec_status do_offer(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct offer_lease l;
    int64_t id;
    tenrec_status st = tenrec_call_get_args(c, err, "i", &id);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    ledger_note(LEDGER_EXEC, (uint64_t)id, 0, 0);
    st = take_lease(tenrec_call_worker(c), (uint64_t)id, &l, err);
    if (st == TENREC_OK) {
        const struct tenrec_value all[] = {
            tenrec_value_region(&l.ref), tenrec_value_int(l.owner),      tenrec_value_int(l.head),
            tenrec_value_int(l.block),   tenrec_value_int(l.first),      tenrec_value_int(l.n),
            tenrec_value_int(l.written), tenrec_value_int(l.written_by),
        };
        const struct tenrec_value ret = tenrec_value_array(all, sizeof all / sizeof all[0]);

        st = tenrec_call_return(c, &ret, err);
    }
    return st;
}

/* ret: has a user more; NULL: it is gone */
static struct offer *offer_use(int64_t owner)
{
    struct offer *o;

    pthread_mutex_lock(&offers.lock);
    for (o = offers.first; o && o->id != (uint64_t)owner;)
        o = o->next;
    if (o)
        o->users++;
    pthread_mutex_unlock(&offers.lock);
    return o;
}

static void offer_unuse(struct offer *o)
{
    pthread_mutex_lock(&offers.lock);
    if (--o->users == 0)
        pthread_cond_signal(&offers.unused);
    pthread_mutex_unlock(&offers.lock);
}

/* "written", the `then` of a batch: its bytes are here. */
static tenrec_status do_written(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    int64_t id, writer, owner, first, n;
    tenrec_status st = tenrec_call_get_args(c, err, "iiiii", &id, &writer, &owner, &first, &n);
    struct offer *o;

    (void)arg;
    if (st != TENREC_OK)
        return st;
    ledger_note(LEDGER_EXEC, (uint64_t)id, 0, 0);
    if (!(o = offer_use(owner)))
        return TENREC_OK;
    for (int64_t i = first; i < first + n; i++)
        if (!pattern_is(offer_bytes(o) + offer_block_at(o, i), (uint64_t)writer,
                        offer_block_at(o, i), (uint64_t)o->block))
            ledger_note(LEDGER_BAD, (uint64_t)writer, BAD_THEN, 0);
    pthread_mutex_lock(&offers.lock);
    o->written = first;
    pthread_mutex_unlock(&offers.lock);
    offer_unuse(o);
    return TENREC_OK;
}

/* "finish": a revoke at a moment that a peer chooses. */
static tenrec_status do_finish(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    int64_t id, owner, ms;
    struct tenrec_value ret;
    tenrec_status st = tenrec_call_get_args(c, err, "iii", &id, &owner, &ms);
    struct offer *o;

    (void)arg;
    if (st != TENREC_OK)
        return st;
    ledger_note(LEDGER_EXEC, (uint64_t)id, 0, 0);
    if ((o = offer_use(owner)) != NULL) {
        (void)offer_revoke(o, ms);
        offer_unuse(o);
    }
    ret = tenrec_value_int(mix((uint64_t)id));
    return tenrec_call_return(c, &ret, err);
}

tenrec_status leases_register(struct tenrec_worker *w, tenrec_error *err)
{
    tenrec_status st =
        tenrec_worker_register_function(w, "offer", do_offer, NULL, TENREC_POOL, err);

    if (st == TENREC_OK)
        st = tenrec_worker_register_function(w, "written", do_written, NULL, TENREC_POOL, err);
    if (st == TENREC_OK)
        st = tenrec_worker_register_function(w, "finish", do_finish, NULL, TENREC_POOL, err);
    return st;
}
