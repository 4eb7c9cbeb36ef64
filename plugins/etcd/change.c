/* SPDX-License-Identifier: Apache-2.0 */
/* change.c - changes that are made once: each has a number, which the client's record keeps with
 * the result. A change is made if the record is still that of the last one; so a late duplicate
 * does nothing, and the record tells what became of a change whose answer was lost. */
#include "etcd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void change_answered(struct etcd_store *s, int64_t revision)
{
    pthread_mutex_lock(&s->lock);
    s->answered = s->asked;
    s->revision = revision;
    pthread_mutex_unlock(&s->lock);
}

/* The names of the keys in the request; NULL without memory. */
static char **change_names(const struct etcd_store *s, const struct change *c)
{
    char **names = calloc(c->n + 1, sizeof *names);

    for (uint32_t i = 0; names && i < c->n; i++)
        if (!(names[i] = txn_key(s, c->keys[i]))) {
            while (i > 0)
                free(names[--i]);
            free(names);
            return NULL;
        }
    return names;
}

/* What the keys hold, from the answer to a txn that failed. */
static tenrec_status change_look(struct change *c, const json_t *answer, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (uint32_t i = 0; i < c->n && st == TENREC_OK; i++) {
        const json_t *kv = answer_kv(answer, i + 2);
        struct held *h = &c->held[i];
        free(h->value);
        *h = (struct held){ .known = true, .revision = answer_number(kv, "mod_revision") };
        if (kv && c->wants_values)
            st = answer_value(kv, &h->value, &h->len, err);
    }
    return st;
}

/* What the client's record says of this change: *ret_made, or its revision for the next try. */
static tenrec_status change_judge(struct etcd_store *s, struct change *c, const json_t *answer,
                                  int64_t *revision, bool *ret_made, tenrec_error *err)
{
    const json_t *kv = answer_kv(answer, 1);
    uint64_t number = 0;
    char *value = NULL, *end;
    size_t len;
    tenrec_status st = answer_check_id(s, answer, err);

    if (st == TENREC_OK && kv)
        st = answer_value(kv, &value, &len, err);
    if (st != TENREC_OK)
        return st;
    *revision = answer_number(kv, "mod_revision");
    if (value) {
        number = strtoull(value, &end, 10);
        *ret_made = number == s->asked;
        if (*ret_made)
            snprintf(c->result, sizeof c->result, "%s", *end ? end + 1 : "");
    }
    free(value);
    return number < s->answered ? answer_lost(err) : TENREC_OK;
}

/* Returns what there is to do. A change that is left although an endpoint may still make it, from a
 * request that it did not answer, is made impossible by a new record. */
static enum change_step change_build(struct etcd_store *s, struct change *c, struct txn *t,
                                     char *const *names, int64_t revision, tenrec_error *err)
{
    enum change_step step;
    char record[64];

    txn_compare_store(t);
    txn_compare_number(t, s->client, "MOD", "EQUAL", revision);
    for (uint32_t i = 0; i < c->n; i++)
        txn_range(t, t->failure, names[i], c->wants_values);
    step = c->plan(c, t, names, err);
    snprintf(record, sizeof record, "%" PRIu64 " %s", s->asked,
             step == CHANGE_MAKE ? c->result : "");
    txn_put(t, s->client, record, strlen(record));
    return step;
}

/* One round. *ret_done: the record has the number of this change; *ret_made: and its result. */
static tenrec_status change_once(struct etcd_store *s, struct change *c, char *const *names,
                                 uint64_t deadline_ns, int64_t *revision, bool *ret_done,
                                 bool *ret_made, tenrec_error *err)
{
    json_t *answer = NULL;
    enum change_step step;
    struct txn t;
    tenrec_status st;

    txn_begin(&t, s);
    step = change_build(s, c, &t, names, *revision, err);
    if (step == CHANGE_FAIL || (step == CHANGE_LEAVE && !c->lost)) {
        txn_drop(&t);
        *ret_done = true;
        return step == CHANGE_FAIL ? TENREC_EINVAL : TENREC_OK;
    }
    st = txn_run(&t, &c->lost, deadline_ns, &answer, ret_done, err);
    txn_drop(&t);
    if (st != TENREC_OK)
        return st;
    *ret_made = *ret_done && step == CHANGE_MAKE;
    if (*ret_done) {
        *revision = answer_revision(answer);
    } else {
        st = change_judge(s, c, answer, revision, ret_made, err);
        *ret_done = *ret_made;
        if (st == TENREC_OK && !*ret_done)
            st = change_look(c, answer, err);
    }
    json_decref(answer);
    if (st == TENREC_OK && *ret_done)
        change_answered(s, *revision);
    return st;
}

static tenrec_status change_repeat(struct etcd_store *s, struct change *c, char *const *names,
                                   uint64_t deadline_ns, bool *ret_made, tenrec_error *err)
{
    struct backoff gap = ASKER_CONTEST;
    int64_t revision = s->revision;
    bool done = false;
    tenrec_status st;

    for (uint32_t n = 0;; n++) {
        st = change_once(s, c, names, deadline_ns, &revision, &done, ret_made, err);
        if (st != TENREC_OK || done)
            return st;
        if (n > 0 && (st = asker_contest(&gap, deadline_ns, err)) != TENREC_OK)
            return st;
    }
}

tenrec_status change_run(struct etcd_store *s, struct change *c, uint64_t deadline_ns,
                         bool *ret_made, tenrec_error *err)
{
    tenrec_status st = turn_take(&s->turn, asker_answer_ns(deadline_ns), err);
    char **names;

    *ret_made = false;
    if (st != TENREC_OK)
        return st;
    s->asked++;
    names = change_names(s, c);
    st = names ? change_repeat(s, c, names, deadline_ns, ret_made, err)
               : tenrec_fail(err, TENREC_ENOMEM, "no memory for a request");
    for (uint32_t i = 0; names && i < c->n; i++)
        free(names[i]);
    free(names);
    turn_give(&s->turn);
    return st;
}

void change_finish(struct change *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        free(c->held[i].value);
}
