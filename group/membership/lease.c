/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/lease.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "group/membership/member_record.h"
#include "group/store/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* The value of a released lease. Not "" as before the first acquire: torch's server (1.13) answers
 * with an empty value only after 200 ms. */
#define FREE "free"

enum {
    FIRST_POLL_US = 2000, /* by a waiter whose turn it is */
    LONGEST_POLL_US = 100000,
    FIRST_ROUND_MS = 500, /* by others: most are called */
    LONGEST_ROUND_MS = 2000,
    LEASE_MIN_MS = 50,
    LEASE_MAX_MS = 600000,
};

/* "<64 random bits, hex> <lease, ms> <process> <holder>"; older workers name no process. */
static void write_token(struct lease *l, const char *holder)
{
    char process[MEMBER_PROCESS];
    uint64_t r = 0;

    if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
        r = clock_now_ns() ^ (uint64_t)(uintptr_t)l;
    member_write_process(process);
    snprintf(l->mine, sizeof l->mine, "%016" PRIx64 " %" PRIu64 " %s %.127s", r, l->lease_ms,
             process, holder);
}

/* The time for which the holder of `token` may be silent, within the limits. */
static uint64_t lease_of(const char *token, uint64_t otherwise_ms)
{
    const char *blank = strchr(token, ' ');
    uint64_t ms = blank ? strtoull(blank + 1, NULL, 10) : 0;

    if (ms == 0)
        ms = otherwise_ms;
    if (ms < LEASE_MIN_MS)
        return LEASE_MIN_MS;
    return ms < LEASE_MAX_MS ? ms : LEASE_MAX_MS;
}

static const char *holder_of(const char *token)
{
    const char *blank = strrchr(token, ' ');

    return blank ? blank + 1 : token;
}

/* Its process was here. */
static bool holder_has_ended(const char *token)
{
    const char *blank = strchr(token, ' ');

    blank = blank ? strchr(blank + 1, ' ') : NULL;
    return blank && member_process_has_ended(blank + 1);
}

/* Notes that `token` is under the key now. Returns true if it is a new token. */
static bool lease_note_holder(struct lease *l, const char *token, uint64_t now_ns)
{
    if (*l->seen && strncmp(l->seen, token, sizeof l->seen - 1) == 0)
        return false;
    snprintf(l->seen, sizeof l->seen, "%s", token);
    l->since_ns = now_ns;
    return true;
}

static bool is_free(const char *token)
{
    return !*token || strcmp(token, FREE) == 0;
}

/* Attempts once to acquire the lease: it is free, or the holder's lease has expired. */
static tenrec_status lease_try(struct lease *l, uint64_t deadline_ns, bool *ret_new_holder,
                               tenrec_error *err)
{
    const uint64_t now_ns = clock_now_ns();
    const bool ended = holder_has_ended(l->seen);
    bool over = *l->seen && (ended || now_ns - l->since_ns >=
                                          lease_of(l->seen, l->lease_ms) * UINT64_C(1000000));
    char *now;
    tenrec_status st;

    if (!l->doubtful) /* else the lease may be ours since an earlier attempt */
        l->acquired_ns = now_ns;
    st = store_swap_text(l->store, l->key, over ? l->seen : FREE, l->mine, deadline_ns, &now, err);
    if (st == TENREC_OK &&
        is_free(now)) { /* free, but not as expected: retry with the other value */
        free(now);
        st = store_swap_text(l->store, l->key, over ? FREE : "", l->mine, deadline_ns, &now, err);
        over = false;
    }
    if (st != TENREC_OK)
        return st;
    l->held = strcmp(now, l->mine) == 0;
    if (l->held && over)
        log_line(TENREC_LOG_WARN, "group", "took over the lock of '%s', %s", holder_of(l->seen),
                 ended ? "whose process has ended" : "which held it longer than its lease");
    if (l->held)
        *l->seen = '\0';
    else
        *ret_new_holder = lease_note_holder(l, now, clock_now_ns());
    free(now);
    return TENREC_OK;
}

/* ---- tickets ------------------------------------------------------------------- */

void lease_word_key(const struct lease *l, int64_t ticket, enum lease_word word,
                    char ret[LEASE_KEY])
{
    static const char *const suffix[LEASE_WORDS] = {
        [LEASE_TURN] = "", [LEASE_AGAIN] = "/in", [LEASE_WANTS] = "/wants"
    };

    snprintf(ret, LEASE_KEY, "%.30s/%" PRId64 "%s", l->key, ticket, suffix[word]);
}

/* A holder may see the ticket before its request. */
static tenrec_status lease_draw_ticket(struct lease *l, uint64_t deadline_ns, tenrec_error *err)
{
    char key[LEASE_KEY];
    tenrec_status st;

    if (l->ticket)
        return TENREC_OK;
    l->waits = LEASE_TURN;
    snprintf(key, sizeof key, "%.40s/tickets", l->key);
    st = store_add(l->store, key, 1, deadline_ns, &l->ticket, err);
    if (st == TENREC_OK && (l->ticket < 1 || l->ticket > INT64_MAX / 2)) {
        st = tenrec_fail(err, TENREC_EPROTOCOL,
                         "the number of tickets under %s is malformed: %" PRId64, key, l->ticket);
        l->ticket = 0;
    }
    if (st != TENREC_OK || !l->wants.data)
        return st;
    lease_word_key(l, l->ticket, LEASE_WANTS, key);
    return store_set(l->store, key, l->wants.data, l->wants.len, deadline_ns, err);
}

/* Reads whether the holder calls us or has done what we want. */
static tenrec_status lease_read_answer(struct lease *l, const char *key, uint64_t deadline_ns,
                                       tenrec_error *err)
{
    struct store_value v;
    tenrec_status st = store_read(l->store, key, deadline_ns, &v, err);

    if (st == TENREC_OK && v.data && strcmp(v.data, LEASE_CALL) != 0)
        snprintf(l->answer, sizeof l->answer, "%s", (const char *)v.data);
    free(v.data);
    return st;
}

/* The end of a round: not later than the lease of the holder that we have seen. */
static uint64_t round_end_ns(const struct lease *l, uint64_t round_ms, uint64_t deadline_ns)
{
    const uint64_t now_ns = clock_now_ns();
    const uint64_t over_ns = l->since_ns + lease_of(l->seen, l->lease_ms) * UINT64_C(1000000);
    uint64_t end_ns = clock_deadline_ms(round_ms);

    if (*l->seen && over_ns > now_ns && over_ns < end_ns)
        end_ns = over_ns;
    return end_ns < deadline_ns ? end_ns : deadline_ns;
}

/* Waits for our turn. *ret_turn is false at the end of the round; another worker may have died in
 * its turn. The next round is twice as long. */
static tenrec_status lease_wait_turn(struct lease *l, uint64_t *round_ms, uint64_t deadline_ns,
                                     bool *ret_turn, tenrec_error *err)
{
    char key[LEASE_KEY];
    const char *keys[] = { key };
    bool missing = false;
    tenrec_status st;

    lease_word_key(l, l->ticket, l->waits, key);
    st = store_wait_round(l->store, keys, 1, round_end_ns(l, *round_ms, deadline_ns), deadline_ns,
                          &missing, err);
    *round_ms = *round_ms * 2 < LONGEST_ROUND_MS ? *round_ms * 2 : LONGEST_ROUND_MS;
    *ret_turn = st == TENREC_OK;
    if (st == TENREC_OK && (l->wants.data || l->waits == LEASE_AGAIN))
        st = lease_read_answer(l, key, deadline_ns, err);
    return st == TENREC_ETIMEDOUT ? TENREC_OK : st;
}

void lease_drop_ticket(struct lease *l, uint64_t deadline_ns)
{
    char key[LEASE_WORDS][LEASE_KEY];
    const char *keys[LEASE_WORDS];

    if (!l->ticket)
        return;
    for (int i = 0; i < LEASE_WORDS; i++) {
        lease_word_key(l, l->ticket, (enum lease_word)i, key[i]);
        keys[i] = key[i];
    }
    l->ticket = 0;
    l->waits = LEASE_TURN;
    store_remove_all(l->store, keys, LEASE_WORDS, deadline_ns, NULL, NULL);
}

/* The lease is free: calls the next ticket, and ours is used up. */
static void lease_call_next(struct lease *l, uint64_t deadline_ns)
{
    char next[LEASE_KEY];

    if (!l->ticket)
        return;
    lease_word_key(l, l->next ? l->next : l->ticket + 1, LEASE_TURN, next);
    l->next = 0;
    if (store_set(l->store, next, LEASE_CALL, 1, deadline_ns, NULL) == TENREC_OK)
        lease_drop_ticket(l, deadline_ns);
    l->ticket = 0;
}

static tenrec_status fail_held(const struct lease *l, tenrec_error *err)
{
    return tenrec_fail(err, TENREC_ETIMEDOUT,
                       "'%s' holds the lock of the group, and has not released it in time",
                       holder_of(l->seen));
}

tenrec_status lease_acquire(struct lease *l, const char *holder, uint64_t deadline_ns,
                            tenrec_error *err)
{
    struct backoff pause = { FIRST_POLL_US, LONGEST_POLL_US };
    uint64_t round_ms = FIRST_ROUND_MS;
    bool fresh = false, turn;
    tenrec_status st = lease_draw_ticket(l, deadline_ns, err);

    if (st != TENREC_OK)
        return st;
    *l->answer = '\0';
    turn = l->ticket == 1 && l->waits == LEASE_TURN;
    /* A token that an unanswered acquire or release may have left there is still ours. */
    if (!l->doubtful)
        write_token(l, holder);
    for (;;) {
        if (!turn) {
            st = lease_wait_turn(l, &round_ms, deadline_ns, &turn, err);
            if (st != TENREC_OK || *l->answer)
                return st;
        }
        st = lease_try(l, deadline_ns, &fresh, err);
        if (st == TENREC_OK && !l->held && holder_has_ended(l->seen))
            st = lease_try(l, deadline_ns, &fresh, err);
        l->doubtful = st != TENREC_OK;
        if (st != TENREC_OK || l->held)
            return st;
        if (fresh)
            pause.gap_us = FIRST_POLL_US;
        if (turn ? !backoff_take(&pause, deadline_ns) : clock_passed(deadline_ns))
            return fail_held(l, err);
    }
}

bool lease_is_others(const struct lease *l)
{
    return !l->held && !l->doubtful && *l->seen;
}

bool lease_kept(const struct lease *l, uint64_t deadline_ns)
{
    struct store_value now;
    bool ours;

    if (!l->held ||
        clock_now_ns() - l->acquired_ns < lease_of(l->mine, l->lease_ms) * UINT64_C(1000000))
        return l->held;
    if (store_read(l->store, l->key, deadline_ns, &now, NULL) != TENREC_OK)
        return false;
    ours = now.data && strcmp(now.data, l->mine) == 0;
    free(now.data);
    return ours;
}

void lease_release(struct lease *l, uint64_t deadline_ns)
{
    char *now;

    if (!l->held)
        return;
    l->held = false;
    if (store_swap_text(l->store, l->key, l->mine, FREE, deadline_ns, &now, NULL) == TENREC_OK)
        free(now);
    else
        l->doubtful = true;
    lease_call_next(l, deadline_ns);
}
