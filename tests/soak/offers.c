/* SPDX-License-Identifier: Apache-2.0 */
/* offers.c - regions that a worker makes, revokes among transfers, and keeps for a while: no byte
 * may change then, and each block has the bytes of its one writer. */
#include "offers.h"

#include "caller.h"
#include "ledger.h"
#include "soak_functions.h"

#include <time.h>

enum {
    HOLD_MS = 1500, /* between a revoke and the last check */
    QUIET_MS = 20000,
    DROP_EACH = 8,
};

struct offers offers = { .lock = PTHREAD_MUTEX_INITIALIZER, .unused = PTHREAD_COND_INITIALIZER };

int64_t offers_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- bytes -------------------------------------------------------------------- */

static uint32_t sum_of(const struct offer *o)
{
    const char *at = offer_bytes(o);
    uint32_t sum = 0, v;

    for (uint64_t i = 0; i < tenrec_tensor_bytes(o->memory) / 4; i++) {
        memcpy(&v, at + 4 * i, 4);
        sum = mix((uint64_t)sum << 32 | v) + (uint32_t)i;
    }
    return sum;
}

/* A block that has not its writer's bytes has the former ones, or both: the writer was killed, or
 * its write has failed. */
static void check_block(const struct offer *o, int64_t i)
{
    const unsigned char *at = (const unsigned char *)offer_bytes(o) + offer_block_at(o, i);
    unsigned char before[4], after[4];
    bool foreign = false;

    if (pattern_is(at, o->writer[i], offer_block_at(o, i), (uint64_t)o->block))
        return;
    for (int64_t k = 0; k < o->block && !foreign; k++) {
        if (k % 4 == 0) {
            pattern_fill(before, o->id, offer_block_at(o, i) + (uint64_t)k, 4);
            pattern_fill(after, o->writer[i], offer_block_at(o, i) + (uint64_t)k, 4);
        }
        foreign = at[k] != before[k % 4] && at[k] != after[k % 4];
    }
    ledger_note(foreign ? LEDGER_BAD : LEDGER_MISSING, o->writer[i], BAD_FOREIGN, 0);
}

/* What must hold once no transfer uses the memory. The lock is held. */
static void check_quiet(struct offer *o)
{
    if (o->quiet) {
        if (sum_of(o) != o->sum)
            ledger_note(LEDGER_BAD, o->id, BAD_CHANGED, 0);
        return;
    }
    o->quiet = true;
    o->quiet_ms = offers_now_ms();
    o->sum = sum_of(o);
    if (!pattern_is(offer_bytes(o), o->id, 0, (uint64_t)o->head))
        ledger_note(LEDGER_BAD, o->id, BAD_FOREIGN, 0);
    for (int64_t i = 0; i < o->n_leased; i++)
        check_block(o, i);
    for (int64_t i = o->n_leased; i < o->n_blocks; i++)
        if (!pattern_is(offer_bytes(o) + offer_block_at(o, i), o->id, offer_block_at(o, i),
                        (uint64_t)o->block))
            ledger_note(LEDGER_BAD, o->id, BAD_FOREIGN, 0);
}

/* ---- the end of an offer ---------------------------------------------------------- */

tenrec_status offer_revoke(struct offer *o, int64_t ms)
{
    const uint64_t id = ledger_next();
    tenrec_error err;
    tenrec_status st;

    ledger_note(LEDGER_START, id, KIND_REVOKE, (uint32_t)ms);
    st = tenrec_region_revoke(o->region, ms, &err);
    ledger_note(LEDGER_END, id, st, 0);
    if (st == TENREC_ETIMEDOUT && !strstr(err.text, "'worker"))
        ledger_note(LEDGER_BAD, id, BAD_NAMES, 0);
    pthread_mutex_lock(&offers.lock);
    o->revoked = true;
    if (!o->first_revoke_ms)
        o->first_revoke_ms = offers_now_ms();
    if (st == TENREC_OK)
        check_quiet(o);
    pthread_mutex_unlock(&offers.lock);
    return st;
}

/* Takes it out of the list, and waits until no function uses it. */
static void unlist(struct offer *o)
{
    struct offer **at = &offers.first;

    pthread_mutex_lock(&offers.lock);
    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    offers.n--;
    while (o->users > 0)
        pthread_cond_wait(&offers.unused, &offers.lock);
    pthread_mutex_unlock(&offers.lock);
}

static void offer_free(struct offer *o)
{
    unlist(o);
    tenrec_region_drop(o->region);
    tenrec_tensor_drop(o->memory);
    free(o);
}

/* Returns true if it is gone, or never will be quiet. */
static bool offer_quiet(struct caller *c, struct offer *o, bool now)
{
    static const int64_t limit[] = { 20, 500, 3000 };

    if (offer_revoke(o, now ? 3000 : limit[draw(c, 3)]) == TENREC_OK)
        return true;
    if (offers_now_ms() - o->first_revoke_ms < (int64_t)QUIET_MS * slow())
        return false;
    ledger_note(LEDGER_BAD, o->id, BAD_STUCK, 0);
    return true;
}

static void go_on_with(struct caller *c, struct offer *o, bool now)
{
    bool revoked, quiet, is_over;

    pthread_mutex_lock(&offers.lock);
    revoked = o->revoked;
    quiet = o->quiet;
    is_over = now || offers_now_ms() >= (quiet ? o->quiet_ms + HOLD_MS : o->end_ms);
    pthread_mutex_unlock(&offers.lock);
    if (!is_over)
        return;
    if (!revoked && draw(c, DROP_EACH) == 0) {
        offer_free(o); /* its transfers keep the memory */
        return;
    }
    if (!quiet && (!offer_quiet(c, o, now) || !now))
        return; /* the memory is kept for a while */
    pthread_mutex_lock(&offers.lock);
    if (o->quiet)
        check_quiet(o);
    pthread_mutex_unlock(&offers.lock);
    offer_free(o);
}

/* The thread alone takes offers out, so that the next one stays. */
static void go_on_with_all(struct caller *c, bool now)
{
    struct offer *o, *next;

    pthread_mutex_lock(&offers.lock);
    offers.closed = now;
    o = offers.first;
    pthread_mutex_unlock(&offers.lock);
    for (; o; o = next) {
        pthread_mutex_lock(&offers.lock);
        next = o->next;
        pthread_mutex_unlock(&offers.lock);
        go_on_with(c, o, now);
    }
}

static bool offers_work(struct caller *c)
{
    go_on_with_all(c, false);
    return false;
}

static void offers_rest(struct caller *c)
{
    size_t left;

    do { /* also offers that are being made */
        go_on_with_all(c, true);
        pthread_mutex_lock(&offers.lock);
        left = offers.n;
        pthread_mutex_unlock(&offers.lock);
    } while (left > 0);
}

const struct caller_job offers_job = { .work = offers_work, .rest = offers_rest };
