/* SPDX-License-Identifier: Apache-2.0 */
#include "http.h"

#include "core/base/clock.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_MAX ((size_t)256 << 20) /* bytes; a longer one ends the connection */
#define CONNECT_MS 2000                /* per endpoint: the next one may answer */
#define REQUEST_MS 3000                /* likewise; one more for each MiB */

struct http {
    CURL *curl;
    const struct http_request *request; /* under way */
    char *data;                         /* of the answer, or of its last line */
    size_t len, room;
    bool used;  /* it may have a connection */
    bool ended; /* by request->fn */
    bool full;  /* memory is exhausted, or the answer too long */
    char why[CURL_ERROR_SIZE];
};

static void http_global(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* libcurl's own sockets would stay open in programs that the process starts. */
static curl_socket_t http_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *at)
{
    (void)arg, (void)purpose;
    return socket(at->family, at->socktype | SOCK_CLOEXEC, at->protocol);
}

static long http_status(const struct http *h)
{
    long status = 0;

    curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* libcurl sends a request again, silently, when a connection that it had used before ends without
 * an answer. */
static bool http_may_have_repeated(struct http *h)
{
    long connects = 1;
    const bool used = h->used;

    h->used = true;
    curl_easy_getinfo(h->curl, CURLINFO_NUM_CONNECTS, &connects);
    return used && connects > 0;
}

/* Gives the complete lines to the request's function. */
static void http_lines(struct http *h)
{
    char *line = h->data, *end;

    while (!h->ended && (end = memchr(line, '\n', h->len - (size_t)(line - h->data))) != NULL) {
        json_t *object = json_loadb(line, (size_t)(end - line), 0, NULL);
        h->ended = !object || !h->request->fn(h->request->arg, object);
        json_decref(object);
        line = end + 1;
    }
    h->len -= (size_t)(line - h->data);
    memmove(h->data, line, h->len);
}

static size_t http_answered(char *data, size_t one, size_t n, void *arg)
{
    struct http *h = arg;

    n *= one;
    if (n > ANSWER_MAX - h->len) {
        h->full = true;
        return 0;
    }
    if (h->len + n > h->room) {
        const size_t room = (h->len + n) * 2;
        char *more = realloc(h->data, room);
        if (!more) {
            h->full = true;
            return 0;
        }
        h->data = more;
        h->room = room;
    }
    memcpy(h->data + h->len, data, n);
    h->len += n;
    if (h->request->fn && http_status(h) == 200)
        http_lines(h);
    return h->ended ? 0 : n;
}

static CURLcode http_set_up(struct http *h, const struct http_pool *o)
{
    CURLcode r = curl_easy_setopt(h->curl, CURLOPT_PROTOCOLS_STR, "http,https");

    if (r == CURLE_OK)
        r = curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
    if (r == CURLE_OK) /* whatever http_proxy and its like say */
        r = curl_easy_setopt(h->curl, CURLOPT_PROXY, "");
    if (r == CURLE_OK)
        r = curl_easy_setopt(h->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (r == CURLE_OK)
        r = curl_easy_setopt(h->curl, CURLOPT_OPENSOCKETFUNCTION, http_socket);
    if (r == CURLE_OK)
        r = curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, http_answered);
    if (r == CURLE_OK)
        r = curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, h);
    if (r == CURLE_OK)
        r = curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, h->why);
    if (r == CURLE_OK)
        r = curl_easy_setopt(h->curl, CURLOPT_TCP_KEEPALIVE, 1L);
    /* A name that cannot be resolved in time keeps no thread that must be waited for. */
    if (r == CURLE_OK)
        r = curl_easy_setopt(h->curl, CURLOPT_QUICK_EXIT, 1L);
    if (r == CURLE_OK && *o->ca_file)
        r = curl_easy_setopt(h->curl, CURLOPT_CAINFO, o->ca_file);
    if (r == CURLE_OK && *o->cert_file)
        r = curl_easy_setopt(h->curl, CURLOPT_SSLCERT, o->cert_file);
    if (r == CURLE_OK && *o->key_file)
        r = curl_easy_setopt(h->curl, CURLOPT_SSLKEY, o->key_file);
    if (r == CURLE_OK) /* without it, OpenSSL asks the terminal */
        r = curl_easy_setopt(h->curl, CURLOPT_KEYPASSWD, "");
    return r;
}

static void http_drop(struct http *h)
{
    if (!h)
        return;
    curl_easy_cleanup(h->curl);
    free(h->data);
    free(h);
}

/* An idle handle, or a new one. */
static struct http *http_take(struct http_pool *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct http *h = NULL;

    pthread_mutex_lock(&s->lock);
    if (s->n_idle)
        h = s->idle[--s->n_idle];
    pthread_mutex_unlock(&s->lock);
    if (h || !(h = calloc(1, sizeof *h)))
        return h;
    pthread_once(&once, http_global);
    h->curl = curl_easy_init();
    if (h->curl && http_set_up(h, s) == CURLE_OK)
        return h;
    http_drop(h);
    return NULL;
}

static void http_give(struct http_pool *s, struct http *h)
{
    free(h->data);
    h->data = NULL;
    h->len = h->room = 0;
    h->ended = h->full = false;
    pthread_mutex_lock(&s->lock);
    if (s->n_idle < HTTP_HANDLES_MAX) {
        s->idle[s->n_idle++] = h;
        h = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    http_drop(h);
}

static struct curl_slist *http_headers(const struct http_request *r)
{
    char type[80];
    const char *const lines[] = { "Expect:", type, r->authorization };
    struct curl_slist *list = NULL, *longer;

    snprintf(type, sizeof type, "Content-Type: %s", r->type ? r->type : "application/json");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (!lines[i] || !*lines[i])
            continue;
        if (!(longer = curl_slist_append(list, lines[i]))) {
            curl_slist_free_all(list);
            return NULL;
        }
        list = longer;
    }
    return list;
}

/* Why libcurl failed; the deadline is looked at by the caller. */
static enum http_end http_failed(const struct http_pool *s, const struct http *h, CURLcode r,
                                 tenrec_error *err)
{
    const char *why = *h->why ? h->why : curl_easy_strerror(r);
    tenrec_status code = TENREC_EPEER_LOST;

    switch (r) {
    case CURLE_OUT_OF_MEMORY:
        tenrec_fail(err, TENREC_ENOMEM, "no memory for a request");
        return HTTP_NEVER;
    case CURLE_WRITE_ERROR:
        tenrec_fail(err, h->len > ANSWER_MAX / 2 ? TENREC_EPROTOCOL : TENREC_ENOMEM,
                    "an answer of the server is too long, or memory is exhausted");
        return HTTP_NEVER;
    case CURLE_OPERATION_TIMEDOUT:
        tenrec_fail(err, TENREC_ETIMEDOUT, "the server does not answer");
        return HTTP_AGAIN;
    case CURLE_PEER_FAILED_VERIFICATION:
        tenrec_fail(err, TENREC_ECONFIG,
                    "the server's certificate is refused (%s): see the option 'ca_file'", why);
        return HTTP_NEVER;
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
        tenrec_fail(err, TENREC_ECONFIG, "cannot use 'ca_file', 'cert_file' or 'key_file': %s",
                    why);
        return HTTP_NEVER;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        tenrec_fail(err, TENREC_EPROTOCOL, "the answer is not from %s: %s", s->server, why);
        return HTTP_NEVER;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
        code = TENREC_ECONNECT;
        break;
    default:
        break;
    }
    if (strstr(why, "alert")) {
        tenrec_fail(err, TENREC_ECONFIG,
                    "the server refuses our certificate, or asks for one (%s): see the options "
                    "'cert_file' and 'key_file'",
                    why);
        return HTTP_NEVER;
    }
    tenrec_fail(err, code, "%s%s", why,
                r == CURLE_SSL_CONNECT_ERROR ? "(does it speak TLS at this port?)" : "");
    return HTTP_AGAIN;
}

/* Where the server is, for the address that a worker advertises: of the first answer, which comes
 * while the store is opened. */
static void http_note_address(struct http_pool *s, struct http *h)
{
    const char *ip = NULL;
    long port = 0;

    if (*s->address || curl_easy_getinfo(h->curl, CURLINFO_PRIMARY_IP, &ip) != CURLE_OK ||
        curl_easy_getinfo(h->curl, CURLINFO_PRIMARY_PORT, &port) != CURLE_OK || !ip || !*ip)
        return;
    snprintf(s->address, sizeof s->address, strchr(ip, ':') ? "[%.60s]:%ld" : "%.60s:%ld", ip,
             port);
}

/* libcurl keeps the method of a handle from one request to the next. */
static CURLcode http_set_request(struct http *h, const struct http_request *r)
{
    CURLcode code = curl_easy_setopt(h->curl, CURLOPT_URL, r->url);

    if (code == CURLE_OK && !r->body)
        code = curl_easy_setopt(h->curl, CURLOPT_HTTPGET, 1L);
    if (code == CURLE_OK && r->body)
        code = curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(r->body));
    if (code == CURLE_OK && r->body)
        code = curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, r->body);
    return code == CURLE_OK ? curl_easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, r->method) : code;
}

static enum http_end http_perform(struct http_pool *s, struct http *h, uint64_t deadline_ns,
                                  bool *ret_sent, tenrec_error *err)
{
    const size_t len = h->request->body ? strlen(h->request->body) : 0;
    const int left = clock_left_ms(deadline_ns);
    const long most = h->request->fn ? -1 : REQUEST_MS + (long)(len >> 20) * 1000;
    long limit = left < 0 ? most : most >= 0 && most < left ? most : left;
    CURLcode r;

    if (left == 0)
        return HTTP_LATE;
    limit = limit < 0 ? 0 : limit; /* 0: none, for libcurl */
    curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, limit);
    curl_easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT_MS,
                     limit && limit < CONNECT_MS ? limit : (long)CONNECT_MS);
    *h->why = '\0';
    r = curl_easy_perform(h->curl);
    *ret_sent = r != CURLE_COULDNT_CONNECT && r != CURLE_COULDNT_RESOLVE_HOST;
    if (r == CURLE_WRITE_ERROR && h->ended && !h->full)
        r = CURLE_OK;
    if (r == CURLE_OK) {
        http_note_address(s, h);
        *ret_sent = http_may_have_repeated(h);
        return HTTP_OK;
    }
    if (r == CURLE_OPERATION_TIMEDOUT && clock_passed(deadline_ns)) {
        tenrec_fail(err, TENREC_ETIMEDOUT, "the server does not answer");
        return HTTP_LATE;
    }
    return http_failed(s, h, r, err);
}

enum http_end http_ask(struct http_pool *s, const struct http_request *r, uint64_t deadline_ns,
                       long *ret, json_t **ret_body, bool *ret_sent, tenrec_error *err)
{
    struct curl_slist *headers = http_headers(r);
    struct http *h = http_take(s);
    enum http_end end = HTTP_NEVER;

    *ret = 0;
    *ret_body = NULL;
    *ret_sent = false;
    if (!h || !headers) {
        tenrec_fail(err, TENREC_ENOMEM, "no memory for a request");
        curl_slist_free_all(headers);
        http_drop(h);
        return end;
    }
    h->request = r;
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
    if (http_set_request(h, r) == CURLE_OK)
        end = http_perform(s, h, deadline_ns, ret_sent, err);
    else
        tenrec_fail(err, TENREC_ENOMEM, "no memory for a request");
    if (end == HTTP_OK) {
        *ret = http_status(h);
        *ret_body =
            r->fn && *ret == 200 ? NULL : json_loadb(h->data ? h->data : "", h->len, 0, NULL);
    }
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    http_give(s, h);
    return end;
}

void http_line(const char *from, size_t room, char *ret)
{
    size_t n = 0;

    for (; from[n] && n + 1 < room; n++)
        ret[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : ' ';
    ret[n] = '\0';
}

void http_pool_init(struct http_pool *s)
{
    pthread_mutex_init(&s->lock, NULL);
}

void http_pool_finish(struct http_pool *s)
{
    while (s->n_idle)
        http_drop(s->idle[--s->n_idle]);
    pthread_mutex_destroy(&s->lock);
}
