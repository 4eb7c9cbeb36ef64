/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#define CLOSE_MS 100 /* wait for the server to confirm UNSUBSCRIBE */
#define LOOK_MS 5000 /* poll interval, for changes whose notification was lost */
#define GATHER_MS 5  /* wait for more notifications after one */
#define GATHER_MOST_MS 50

/* Reads `n` confirmations and ignores notifications: the caller reads the keys next. */
static enum conn_end read_confirmations(struct conn *c, uint32_t n, uint64_t deadline_ns,
                                        tenrec_error *err)
{
    enum conn_end end = CONN_OK;

    while (n > 0 && end == CONN_OK) {
        redisReply *r = NULL;
        end = conn_read(c, deadline_ns, &r, err);
        if (end == CONN_OK && r->type == REDIS_REPLY_ERROR)
            end = conn_refused(r, err);
        else if (end == CONN_OK && r->type == REDIS_REPLY_ARRAY && r->elements == 3 &&
                 r->element[0]->str && strcmp(r->element[0]->str, "subscribe") == 0)
            n--;
        freeReplyObject(r);
    }
    return end;
}

/* The channel of a key is "jobs/17" + "/default/1/member/3". */
static enum conn_end subscribe_all(struct redis_store *s, struct conn *c, const char *const *keys,
                                   uint32_t n, const bool *missing, uint64_t deadline_ns,
                                   tenrec_error *err)
{
    enum conn_end end = CONN_OK;
    uint32_t count = 0;

    for (uint32_t i = 0; i < n && end == CONN_OK; i++)
        if (missing[i]) {
            end = conn_sendf(c, deadline_ns, err, "SUBSCRIBE %s%s", s->url.prefix, keys[i]);
            count++;
        }
    return end == CONN_OK ? read_confirmations(c, count, deadline_ns, err) : end;
}

static struct conn *take_idle(struct redis_store *s)
{
    struct conn *c;

    pthread_mutex_lock(&s->lock);
    c = s->subscriber;
    s->subscriber = NULL;
    pthread_mutex_unlock(&s->lock);
    return c;
}

enum conn_end subscriber_open(struct redis_store *s, const char *const *keys, uint32_t n,
                              const bool *missing, uint64_t deadline_ns, struct conn **ret,
                              tenrec_error *err)
{
    struct conn *c = take_idle(s);
    enum conn_end end = CONN_AGAIN;

    if (c)
        end = subscribe_all(s, c, keys, n, missing, deadline_ns, err);
    if (end == CONN_AGAIN) { /* no idle connection, or a broken one */
        conn_drop(c);
        c = NULL;
        end = conn_open(&s->login, deadline_ns, &c, err);
        if (end == CONN_OK)
            end = subscribe_all(s, c, keys, n, missing, deadline_ns, err);
    }
    if (end == CONN_OK)
        *ret = c;
    else
        conn_drop(c);
    return end;
}

static uint64_t subscriber_sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

enum conn_end subscriber_wait(struct conn *subscriber, uint32_t count, uint64_t deadline_ns,
                              tenrec_error *err)
{
    uint64_t until = subscriber_sooner(deadline_ns, clock_deadline_ms(LOOK_MS));
    uint32_t heard = 0;
    enum conn_end end = CONN_OK;

    while (end == CONN_OK && heard < count) {
        redisReply *r = NULL;
        end = conn_read(subscriber, until, &r, err);
        freeReplyObject(r);
        /* Notifications in a burst are not worth a read of the keys each. */
        if (heard++ == 0)
            deadline_ns = subscriber_sooner(deadline_ns, clock_deadline_ms(GATHER_MOST_MS));
        until = subscriber_sooner(deadline_ns, clock_deadline_ms(GATHER_MS));
    }
    return end == CONN_LATE ? CONN_OK : end;
}

/* Returns true if the server has confirmed that it sends no more notifications. */
static bool subscriber_unsubscribe(struct conn *c, uint64_t deadline_ns)
{
    bool quiet = false;
    redisReply *r;

    if (conn_sendf(c, deadline_ns, NULL, "UNSUBSCRIBE") != CONN_OK)
        return false;
    while (!quiet) {
        r = NULL;
        if (conn_read(c, deadline_ns, &r, NULL) != CONN_OK)
            return false;
        quiet = r->type == REDIS_REPLY_ARRAY && r->elements == 3 && r->element[0]->str &&
                strcmp(r->element[0]->str, "unsubscribe") == 0 && r->element[2]->integer == 0;
        freeReplyObject(r);
    }
    return true;
}

void subscriber_close(struct redis_store *s, struct conn *subscriber, bool broken,
                      uint64_t deadline_ns)
{
    const uint64_t until_ns = subscriber_sooner(clock_later_ms(deadline_ns, REDIS_ANSWER_MS),
                                                clock_deadline_ms(CLOSE_MS));

    if (subscriber && !broken && subscriber_unsubscribe(subscriber, until_ns)) {
        pthread_mutex_lock(&s->lock);
        if (!s->subscriber) {
            s->subscriber = subscriber;
            subscriber = NULL;
        }
        pthread_mutex_unlock(&s->lock);
    }
    conn_drop(subscriber);
}
