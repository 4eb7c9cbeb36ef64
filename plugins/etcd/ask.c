/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - requests to any endpoint that answers, within the deadline. */
#include "etcd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SAY_NS UINT64_C(1000000000) /* an outage that lasts so long is logged */

uint64_t etcd_answer_ns(uint64_t deadline_ns)
{
    return clock_later_ms(deadline_ns, 80); /* of 100 ms */
}

static bool ask_needs_login(struct etcd_store *s)
{
    bool needs;

    pthread_mutex_lock(&s->lock);
    needs = *s->user && !*s->token;
    pthread_mutex_unlock(&s->lock);
    return needs;
}

static void ask_set_token(struct etcd_store *s, const char *token)
{
    pthread_mutex_lock(&s->lock);
    snprintf(s->token, sizeof s->token, "%s", token);
    pthread_mutex_unlock(&s->lock);
}

static char *ask_text(const json_t *request, tenrec_error *err)
{
    char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;

    if (!text)
        tenrec_fail(err, TENREC_ENOMEM, "no memory for a request");
    return text;
}

static enum http_end ask_login(struct etcd_store *s, uint32_t endpoint, uint64_t deadline_ns,
                               tenrec_error *err)
{
    json_t *request = json_pack("{s:s,s:s}", "name", s->user, "password", s->password), *answer;
    char *text = ask_text(request, err);
    const struct http_request r = { .path = "auth/authenticate", .body = text };
    enum http_end end = HTTP_NEVER;
    const char *token;
    bool sent;
    long status;

    json_decref(request);
    if (!text)
        return end;
    end = http_post(s, endpoint, &r, deadline_ns, &status, &answer, &sent, err);
    explicit_bzero(text, strlen(text));
    free(text);
    if (end != HTTP_OK)
        return end;
    token = json_string_value(json_object_get(answer, "token"));
    if (status == 200 && token && *token && strlen(token) < sizeof s->token &&
        !strpbrk(token, "\r\n"))
        ask_set_token(s, token);
    else
        end = etcd_refused(status, answer, err);
    json_decref(answer);
    return end;
}

/* With a login before it, if there is a user. */
static enum http_end ask_once(struct etcd_store *s, uint32_t endpoint, const struct http_request *r,
                              uint64_t deadline_ns, json_t **ret, bool *ret_sent, tenrec_error *err)
{
    enum http_end end;
    long status;

    for (int logins = 0; logins < 3; logins++) {
        if (ask_needs_login(s) && (end = ask_login(s, endpoint, deadline_ns, err)) != HTTP_OK)
            return end;
        end = http_post(s, endpoint, r, deadline_ns, &status, ret, ret_sent, err);
        if (end != HTTP_OK || r->fn || (status == 200 && *ret))
            return end;
        end = etcd_refused(status, *ret, err);
        json_decref(*ret);
        if (end != HTTP_OK)
            return end;
        ask_set_token(s, ""); /* it has expired */
    }
    tenrec_fail(err, TENREC_ECONFIG, "the server forgets the login at once");
    return HTTP_NEVER;
}

/* The next endpoint, unless another thread has moved on already. */
static void ask_move(struct etcd_store *s, uint32_t from)
{
    atomic_compare_exchange_strong(&s->endpoint, &from, (from + 1) % s->url.n_hosts);
}

static void ask_name_endpoint(const struct etcd_store *s, uint32_t endpoint, tenrec_error *err)
{
    if (s->url.n_hosts > 1)
        tenrec_error_prefix(err, "%.150s:%u", s->url.at[endpoint].host, s->url.at[endpoint].port);
}

/* Once for each outage. */
static void ask_tell(struct etcd_store *s, const tenrec_error *why)
{
    if (!atomic_exchange(&s->is_out, true))
        s->self->host->log(s->self, TENREC_LOG_WARN, "%s does not answer, and is tried again: %s",
                           s->name, why->text);
}

static tenrec_status ask_fail(const struct etcd_store *s, enum http_end end, tenrec_error *why,
                              const char *more, uint64_t since, tenrec_error *err)
{
    if (end == HTTP_LATE && !*why->text)
        tenrec_fail(why, TENREC_ETIMEDOUT, "the server does not answer");
    if (why->code == TENREC_ECONNECT && *s->id) /* connected before */
        why->code = TENREC_EPEER_LOST;
    if (err)
        *err = *why;
    /* The prefix below does not apply to a refusal. */
    if (end != HTTP_NEVER)
        tenrec_error_prefix(err, "no answer for %" PRIu64 " ms%s",
                            (clock_now_ns() - since) / 1000000u, more);
    return why->code;
}

tenrec_status etcd_ask(struct etcd_store *s, const char *path, const json_t *request, bool *lost,
                       uint64_t deadline_ns, json_t **ret, tenrec_error *err)
{
    const uint64_t since = clock_now_ns();
    char *text = ask_text(request, err);
    const struct http_request r = { .path = path, .body = text };
    struct backoff gap = { ETCD_GAP_US, ETCD_GAP_MOST_US };
    bool sent, unknown = false;
    tenrec_error why = { 0 };
    enum http_end end;

    if (!text)
        return TENREC_ENOMEM;
    deadline_ns = etcd_answer_ns(deadline_ns);
    for (uint32_t failed = 0;;) {
        const uint32_t endpoint = atomic_load(&s->endpoint);
        sent = false;
        end = ask_once(s, endpoint, &r, deadline_ns, ret, &sent, &why);
        if (end == HTTP_OK) {
            atomic_store(&s->is_out, false);
            break;
        }
        unknown |= sent;
        ask_name_endpoint(s, endpoint, &why);
        if (end == HTTP_AGAIN || end == HTTP_LATE)
            ask_move(s, endpoint);
        if (end != HTTP_AGAIN)
            break;
        if (clock_now_ns() - since > SAY_NS)
            ask_tell(s, &why);
        if (++failed % s->url.n_hosts == 0 && !backoff_take(&gap, deadline_ns))
            break;
        if (clock_passed(deadline_ns))
            break;
    }
    free(text);
    atomic_store(&s->reached, end == HTTP_OK);
    if (lost)
        *lost |= unknown;
    return end == HTTP_OK
               ? TENREC_OK
               : ask_fail(s, end, &why,
                          lost && unknown ? ", and the change may have been made" : "", since, err);
}

enum http_end etcd_follow(struct etcd_store *s, const struct http_request *r, uint64_t deadline_ns,
                          tenrec_error *err)
{
    const uint32_t endpoint = atomic_load(&s->endpoint);
    json_t *answer = NULL;
    bool sent;
    enum http_end end = ask_once(s, endpoint, r, deadline_ns, &answer, &sent, err);

    if (end == HTTP_AGAIN)
        ask_move(s, endpoint);
    return end;
}
