/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - runs one script at the server; retries over new connections. */
#include "store.h"

#include <inttypes.h>
#include <stdlib.h>

#define HEAD 9 /* words before a call's own: EVAL script 2 meta keys id client answered number */

/* The words of one call, in one block. */
struct words {
    const char **word;
    size_t *len;
    int n;
    char number[24], answered[24];
};

static bool words_make(struct words *w, const struct redis_store *s, const struct call *call)
{
    const char *head[HEAD] = { "EVAL", call->script, "2",         s->meta,  s->url.prefix,
                               s->id,  s->client,    w->answered, w->number };

    w->n = HEAD + (int)call->n;
    w->word = malloc((size_t)w->n * sizeof *w->word);
    w->len = malloc((size_t)w->n * sizeof *w->len);
    if (!w->word || !w->len)
        return false;
    snprintf(w->answered, sizeof w->answered, "%" PRIu64, s->answered);
    snprintf(w->number, sizeof w->number, "%" PRIu64, call->changes ? s->asked : 0);
    for (int i = 0; i < w->n; i++) {
        int k = i - HEAD;
        w->word[i] = k < 0 ? head[i] : call->arg[k];
        w->len[i] = k < 0 || !call->len ? strlen(w->word[i]) : call->len[k];
    }
    return true;
}

/* Sends the command once, over the open connection or a new one. *ret_sent is
 * true if the server may have received it. */
static enum conn_end try_once(struct redis_store *s, const struct words *w, uint64_t deadline_ns,
                              redisReply **ret, bool *ret_sent, tenrec_error *err)
{
    enum conn_end end = CONN_OK;

    if (!s->conn)
        end = conn_open(&s->login, deadline_ns, &s->conn, err);
    if (end != CONN_OK)
        return end;
    *ret_sent = true;
    end = conn_send(s->conn, w->n, w->word, w->len, deadline_ns, err);
    if (end == CONN_OK)
        end = conn_read(s->conn, deadline_ns, ret, err);
    if (end != CONN_OK) { /* a late reply would be read as that of the next command */
        conn_drop(s->conn);
        s->conn = NULL;
        return end;
    }
    return CONN_OK;
}

/* Maps an error reply; a refused script has changed nothing. */
static enum conn_end call_refused(const redisReply *r, tenrec_error *err)
{
    if (strncmp(r->str, "LOST ", 5) == 0) {
        tenrec_fail(err, TENREC_EPEER_LOST,
                    "the server has lost its keys (it was restarted without persistence, the "
                    "lease expired, or the keys were removed): restart all workers");
        return CONN_NEVER;
    }
    if (strstr(r->str, "is not an integer") || strstr(r->str, "would overflow")) {
        tenrec_fail(err, TENREC_EINVAL, "the value is no integer of 64 bits");
        return CONN_NEVER;
    }
    return conn_refused(r, err);
}

/* With the connection acquired. */
static tenrec_status call_run(struct redis_store *s, const struct call *call, const struct words *w,
                              uint64_t deadline_ns, redisReply **ret, tenrec_error *err)
{
    struct backoff gap = { 10000, 500000 };
    const uint64_t since = clock_now_ns();
    bool sent, unknown = false; /* the server may have made the change */
    tenrec_error why = { 0 };
    enum conn_end end;

    for (;;) {
        *ret = NULL;
        sent = false;
        end = try_once(s, w, deadline_ns, ret, &sent, &why);
        unknown |= sent && end != CONN_OK;
        if (end == CONN_OK && (*ret)->type == REDIS_REPLY_ERROR)
            end = call_refused(*ret, &why);
        if (end == CONN_OK && (*ret)->type == REDIS_REPLY_ARRAY)
            return TENREC_OK;
        if (end == CONN_OK) {
            tenrec_fail(&why, TENREC_EPROTOCOL,
                        "the server answers a script with a reply of type %d", (*ret)->type);
            end = CONN_NEVER;
        }
        freeReplyObject(*ret);
        if (end != CONN_AGAIN || !backoff_take(&gap, deadline_ns))
            break;
    }
    if (end == CONN_LATE && !*why.text)
        tenrec_fail(&why, TENREC_ETIMEDOUT, "the server does not answer");
    if (end == CONN_LATE && why.code != TENREC_EPEER_LOST && why.code != TENREC_ECONNECT)
        why.code = TENREC_ETIMEDOUT;
    if (why.code == TENREC_ECONNECT && *s->id) /* connected before */
        why.code = TENREC_EPEER_LOST;
    if (err)
        *err = why;
    /* The prefix below does not apply to a refusal. */
    if (end == CONN_NEVER)
        return why.code;
    tenrec_error_prefix(err, "no answer for %" PRIu64 " ms%s", (clock_now_ns() - since) / 1000000u,
                        call->changes && unknown ? ", and the change may have been made" : "");
    return why.code;
}

static bool is_noted(const redisReply *r)
{
    return r && r->elements > 0 && r->element[0]->str && strcmp(r->element[0]->str, "1") == 0;
}

tenrec_status redis_call(struct redis_store *s, const struct call *call, uint64_t deadline_ns,
                         redisReply **ret, tenrec_error *err)
{
    struct words w = { 0 };
    tenrec_status st;

    deadline_ns = clock_later_ms(deadline_ns, REDIS_ANSWER_MS);
    if ((st = turn_take(&s->turn, deadline_ns, err)) != TENREC_OK)
        return st;
    s->asked += call->changes;
    if (words_make(&w, s, call))
        st = call_run(s, call, &w, deadline_ns, ret, err);
    else
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for a command");
    if (st == TENREC_OK && call->changes && is_noted(*ret))
        s->answered = s->asked;
    free(w.word);
    free(w.len);
    turn_give(&s->turn);
    return st;
}
