/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - requests to any endpoint that answers, within the deadline. */
#include "etcd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool ask_needs_login(struct etcd_store *s)
{
    bool needs;

    pthread_mutex_lock(&s->lock);
    needs = *s->login.user && !*s->token;
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

/* `r` without its URL and authorization, to one endpoint. */
static enum http_end ask_post(struct etcd_store *s, uint32_t endpoint, const char *path,
                              struct http_request r, uint64_t deadline_ns, long *ret,
                              json_t **ret_body, bool *ret_sent, tenrec_error *err)
{
    const struct store_host *at = &s->url.at[endpoint];
    const bool v6 = strchr(at->host, ':') != NULL;
    char url[400], token[sizeof s->token + 20] = "";
    enum http_end end;

    snprintf(url, sizeof url, "http%s://%s%s%s:%u/v3/%s", s->url.tls ? "s" : "", v6 ? "[" : "",
             at->host, v6 ? "]" : "", at->port, path);
    pthread_mutex_lock(&s->lock);
    if (*s->token)
        snprintf(token, sizeof token, "Authorization: %s", s->token);
    pthread_mutex_unlock(&s->lock);
    r.url = url;
    r.authorization = token;
    end = http_ask(&s->pool, &r, deadline_ns, ret, ret_body, ret_sent, err);
    explicit_bzero(token, sizeof token);
    return end;
}

static enum http_end ask_login(struct etcd_store *s, uint32_t endpoint, uint64_t deadline_ns,
                               tenrec_error *err)
{
    json_t *request = json_pack("{s:s,s:s}", "name", s->login.user, "password", s->login.password),
           *answer;
    char *text = ask_text(request, err);
    const struct http_request r = { .body = text };
    enum http_end end = HTTP_NEVER;
    const char *token;
    bool sent;
    long status;

    json_decref(request);
    if (!text)
        return end;
    end = ask_post(s, endpoint, "auth/authenticate", r, deadline_ns, &status, &answer, &sent, err);
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
static enum http_end ask_once(struct etcd_store *s, uint32_t endpoint, const char *path,
                              const struct http_request *r, uint64_t deadline_ns, json_t **ret,
                              bool *ret_sent, tenrec_error *err)
{
    enum http_end end;
    long status;

    for (int logins = 0; logins < 3; logins++) {
        if (ask_needs_login(s) && (end = ask_login(s, endpoint, deadline_ns, err)) != HTTP_OK)
            return end;
        end = ask_post(s, endpoint, path, *r, deadline_ns, &status, ret, ret_sent, err);
        if (end != HTTP_OK || (status == 200 && (*ret || r->fn)))
            return end;
        *ret_sent = true;
        end = etcd_refused(status, *ret, err);
        json_decref(*ret);
        if (end != HTTP_OK)
            return end;
        ask_set_token(s, ""); /* it has expired */
    }
    tenrec_fail(err, TENREC_ECONFIG, "the server forgets the login at once");
    return HTTP_NEVER;
}

static void ask_name_endpoint(const struct etcd_store *s, uint32_t endpoint, tenrec_error *err)
{
    if (s->url.n_hosts > 1)
        tenrec_error_prefix(err, "%.150s:%u", s->url.at[endpoint].host, s->url.at[endpoint].port);
}

struct asked {
    struct etcd_store *s;
    const char *path;
    struct http_request request;
    json_t **ret;
};

static enum http_end asked_once(void *arg, uint32_t endpoint, uint64_t deadline_ns, bool *ret_sent,
                                tenrec_error *err)
{
    const struct asked *a = arg;
    enum http_end end =
        ask_once(a->s, endpoint, a->path, &a->request, deadline_ns, a->ret, ret_sent, err);

    if (end != HTTP_OK)
        ask_name_endpoint(a->s, endpoint, err);
    return end;
}

tenrec_status etcd_ask(struct etcd_store *s, const char *path, const json_t *request, bool *lost,
                       uint64_t deadline_ns, json_t **ret, tenrec_error *err)
{
    char *text = ask_text(request, err);
    struct asked a = { .s = s, .path = path, .request.body = text, .ret = ret };
    tenrec_status st =
        text ? asker_run(&s->asker, asked_once, &a, lost, deadline_ns, err) : TENREC_ENOMEM;

    free(text);
    return st;
}

enum http_end etcd_follow(struct etcd_store *s, const char *path, const struct http_request *r,
                          uint64_t deadline_ns, tenrec_error *err)
{
    const uint32_t endpoint = atomic_load(&s->asker.endpoint);
    json_t *answer = NULL;
    bool sent;
    enum http_end end = ask_once(s, endpoint, path, r, deadline_ns, &answer, &sent, err);

    if (end == HTTP_AGAIN)
        asker_move(&s->asker, endpoint);
    return end;
}
