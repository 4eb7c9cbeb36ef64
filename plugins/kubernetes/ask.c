/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - requests to the API server, with the token as its file has it now, and what refusals
 * mean. */
#include "kubernetes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOKEN_MAX 8192

struct asked {
    struct kubernetes_store *s;
    struct http_request request;
    long *ret;
    json_t **ret_body;
};

/* The cluster replaces the file before its token expires: it is read for each request. */
static tenrec_status ask_token(const struct kubernetes_store *s, char ret[TOKEN_MAX + 32],
                               tenrec_error *err)
{
    const size_t head = (size_t)sprintf(ret, "Authorization: Bearer ");
    int fd;
    ssize_t n;

    if (!*s->token_file) {
        *ret = '\0';
        return TENREC_OK;
    }
    fd = open(s->token_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    n = fd < 0 ? -1 : read(fd, ret + head, TOKEN_MAX);
    if (n < 0)
        tenrec_fail_errno(err, TENREC_ECONFIG, errno, "cannot read 'token_file' \"%s\"",
                          s->token_file);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return TENREC_ECONFIG;
    ret[head + (size_t)n] = '\0';
    ret[head + strcspn(ret + head, "\r\n")] = '\0';
    if (n == TOKEN_MAX || !ret[head])
        return tenrec_fail(err, TENREC_ECONFIG, "'token_file' \"%s\" has no token, or a long one",
                           s->token_file);
    return TENREC_OK;
}

/* The token of the file is another one by now. */
static bool ask_token_changed(const struct kubernetes_store *s, const char *sent)
{
    char now[TOKEN_MAX + 32];
    const bool changed = ask_token(s, now, NULL) == TENREC_OK && strcmp(now, sent) != 0;

    explicit_bzero(now, sizeof now);
    return changed;
}

/* An answer that is no success. */
static enum http_end ask_refused(const struct kubernetes_store *s, long status, const json_t *body,
                                 const char *token, tenrec_error *err)
{
    const char *message = json_string_value(json_object_get(body, "message"));
    char text[200];

    http_line(message ? message : "no reason is given", sizeof text, text);
    switch (status) {
    case 401:
        tenrec_fail(err, TENREC_ECONFIG, "the server refuses the token%s%s%s (%.120s)",
                    *s->token_file ? " of \"" : "", s->token_file, *s->token_file ? "\"" : "",
                    text);
        /* A token that has expired is replaced in a moment. */
        return s->asker.is_open || ask_token_changed(s, token) ? HTTP_AGAIN : HTTP_NEVER;
    case 403:
        tenrec_fail(err, TENREC_ECONFIG, "the service account lacks a right: %s", text);
        return HTTP_NEVER;
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
        tenrec_fail(err, TENREC_EPEER_LOST, "the server is busy (HTTP %ld: %.120s)", status, text);
        return HTTP_AGAIN;
    default:
        tenrec_fail(err, TENREC_EPROTOCOL, "the server refuses a request (HTTP %ld: %.120s)",
                    status, text);
        return HTTP_NEVER;
    }
}

static void ask_forget(json_t **body)
{
    json_decref(*body);
    *body = NULL;
}

static enum http_end ask_once(void *arg, uint32_t endpoint, uint64_t deadline_ns, bool *ret_sent,
                              tenrec_error *err)
{
    const struct asked *a = arg;
    struct http_request r = a->request;
    char token[TOKEN_MAX + 32];
    enum http_end end = HTTP_NEVER;

    (void)endpoint;
    if (ask_token(a->s, token, err) == TENREC_OK) {
        r.authorization = token;
        end = http_ask(&a->s->pool, &r, deadline_ns, a->ret, a->ret_body, ret_sent, err);
    }
    if (end == HTTP_OK && (*a->ret == 200 || *a->ret == 201 || *a->ret == 202)) {
        *a->ret = 200;
        if (!r.fn && !json_is_object(*a->ret_body)) {
            ask_forget(a->ret_body);
            tenrec_fail(err, TENREC_EPROTOCOL, "the answer is not from a Kubernetes API");
            end = HTTP_NEVER;
        }
    } else if (end == HTTP_OK && *a->ret != 404 && *a->ret != 409 && *a->ret != 410) {
        *ret_sent = true;
        end = ask_refused(a->s, *a->ret, *a->ret_body, token, err);
        ask_forget(a->ret_body);
    }
    explicit_bzero(token, sizeof token);
    return end;
}

tenrec_status kubernetes_ask(struct kubernetes_store *s, const char *method, const char *path,
                             const json_t *body, bool *lost, uint64_t deadline_ns, long *ret,
                             json_t **ret_body, tenrec_error *err)
{
    char url[sizeof s->base + KUBERNETES_PATH];
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct asked a = { .s = s,
                       .request = { .method = method, .url = url, .body = text },
                       .ret = ret,
                       .ret_body = ret_body };
    tenrec_status st;

    *ret_body = NULL;
    if (body && !text)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a request");
    if (method && strcmp(method, "PATCH") == 0)
        a.request.type = "application/merge-patch+json";
    snprintf(url, sizeof url, "%s%s", s->base, path);
    st = asker_run(&s->asker, ask_once, &a, lost, deadline_ns, err);
    free(text);
    return st;
}

enum http_end kubernetes_follow(struct kubernetes_store *s, const char *path, http_line_fn *fn,
                                void *arg, uint64_t deadline_ns, tenrec_error *err)
{
    char url[sizeof s->base + KUBERNETES_PATH];
    json_t *body = NULL;
    long status;
    struct asked a = {
        .s = s, .request = { .url = url, .fn = fn, .arg = arg }, .ret = &status, .ret_body = &body
    };
    bool sent;
    enum http_end end;

    snprintf(url, sizeof url, "%s%s", s->base, path);
    end = ask_once(&a, 0, deadline_ns, &sent, err);
    if (end == HTTP_OK)
        json_decref(body); /* of 410 Gone, say */
    return end;
}
