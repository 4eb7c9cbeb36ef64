/* SPDX-License-Identifier: Apache-2.0 */
#include "otlp.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_MAX = 65536, /* bytes of an answer; a longer one ends the connection */
    SHOWN_MAX = 200,    /* of it, in an error */
};

struct post {
    CURL *curl;
    struct curl_slist *headers;
    const char *url;
    size_t answer_len;
    char shown[SHOWN_MAX + 1];
    char why[CURL_ERROR_SIZE];
};

static void post_global(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* Keeps the first bytes of an answer, without control characters. */
static size_t post_answered(char *data, size_t one, size_t n, void *arg)
{
    struct post *p = arg;

    if (n * one > ANSWER_MAX - p->answer_len)
        return 0;
    for (size_t i = 0; i < n * one; i++, p->answer_len++)
        if (p->answer_len < SHOWN_MAX)
            p->shown[p->answer_len] = data[i] >= ' ' && data[i] <= '~' ? data[i] : ' ';
    return n;
}

/* A line break would begin another header, or the body. */
static bool is_header(const struct tenrec_option_pair *h)
{
    static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

    return *h->key && strspn(h->key, token) == strlen(h->key) && *h->value.s &&
           !strpbrk(h->value.s, "\r\n");
}

static tenrec_status add_header(struct post *p, const char *name, const char *value,
                                tenrec_error *err)
{
    const size_t size = strlen(name) + strlen(value) + sizeof ": ";
    struct curl_slist *longer = NULL;
    char *line = malloc(size);

    if (line) {
        snprintf(line, size, "%s%s%s", name, *value ? ": " : ":", value);
        longer = curl_slist_append(p->headers, line);
    }
    free(line);
    if (!longer)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory");
    p->headers = longer;
    return TENREC_OK;
}

/* The values are secret: no error shows them. */
static tenrec_status add_headers(struct post *p, const struct tenrec_option_map *headers,
                                 tenrec_error *err)
{
    tenrec_status st = add_header(p, "Content-Type", "application/json", err);

    if (st == TENREC_OK) /* no wait for permission to send */
        st = add_header(p, "Expect", "", err);
    for (size_t i = 0; i < headers->n && st == TENREC_OK; i++) {
        if (!is_header(&headers->v[i]))
            return tenrec_fail(err, TENREC_EINVAL,
                               "header '%s': a name has letters, digits, '-' and '_', and a value "
                               "is one line that is not empty",
                               headers->v[i].key);
        st = add_header(p, headers->v[i].key, headers->v[i].value.s, err);
    }
    return st;
}

static CURLcode set_up(struct post *p, bool here, const char *ca_file)
{
    CURLcode r = curl_easy_setopt(p->curl, CURLOPT_URL, p->url);

    if (r == CURLE_OK)
        r = curl_easy_setopt(p->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    if (r == CURLE_OK)
        r = curl_easy_setopt(p->curl, CURLOPT_FOLLOWLOCATION, 0L);
    if (r == CURLE_OK)
        r = curl_easy_setopt(p->curl, CURLOPT_NOSIGNAL, 1L);
    if (r == CURLE_OK)
        r = curl_easy_setopt(p->curl, CURLOPT_HTTPHEADER, p->headers);
    if (r == CURLE_OK)
        r = curl_easy_setopt(p->curl, CURLOPT_USERAGENT, "tenrec-otlp/1.0.0");
    if (r == CURLE_OK)
        r = curl_easy_setopt(p->curl, CURLOPT_WRITEFUNCTION, post_answered);
    if (r == CURLE_OK)
        r = curl_easy_setopt(p->curl, CURLOPT_WRITEDATA, p);
    if (r == CURLE_OK)
        r = curl_easy_setopt(p->curl, CURLOPT_ERRORBUFFER, p->why);
#if LIBCURL_VERSION_NUM >= 0x075700
    /* A name that cannot be resolved in time keeps no thread that must be waited for. */
    if (r == CURLE_OK)
        r = curl_easy_setopt(p->curl, CURLOPT_QUICK_EXIT, 1L);
#endif
    if (r == CURLE_OK && here) /* whatever http_proxy and its like say */
        r = curl_easy_setopt(p->curl, CURLOPT_PROXY, "");
    if (r == CURLE_OK && *ca_file)
        r = curl_easy_setopt(p->curl, CURLOPT_CAINFO, ca_file);
    return r;
}

tenrec_status post_open(const char *url, bool here, const struct tenrec_option_map *headers,
                        const char *ca_file, struct post **ret, tenrec_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct post *p = calloc(1, sizeof *p);
    CURLcode r;
    tenrec_status st;

    if (!p)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory");
    pthread_once(&once, post_global);
    p->url = url;
    p->curl = curl_easy_init();
    st = p->curl ? add_headers(p, headers, err) : tenrec_fail(err, TENREC_ENOMEM, "no memory");
    if (st == TENREC_OK && (r = set_up(p, here, ca_file)) != CURLE_OK)
        st = tenrec_fail(err, TENREC_EUNSUPPORTED, "libcurl: %s", curl_easy_strerror(r));
    if (st == TENREC_OK)
        *ret = p;
    else
        post_close(p);
    return st;
}

void post_close(struct post *p)
{
    if (!p)
        return;
    curl_easy_cleanup(p->curl);
    curl_slist_free_all(p->headers);
    free(p);
}

/* By the protocol's table of answers. */
static tenrec_status post_status(const struct post *p, long status, tenrec_error *err)
{
    if (status >= 200 && status < 300)
        return TENREC_OK;
    if (status == 429 || status == 502 || status == 503 || status == 504)
        return tenrec_fail(err, TENREC_ECONNECT, "%s is busy (HTTP %ld)", p->url, status);
    if (status >= 300 && status < 400)
        return tenrec_fail(err, TENREC_EPERM,
                           "%s redirects (HTTP %ld), which is not followed: give the final address",
                           p->url, status);
    return tenrec_fail(err, TENREC_EPERM, "%s refuses (HTTP %ld): %s", p->url, status, p->shown);
}

tenrec_status post_send(struct post *p, const void *body, size_t len, uint32_t timeout_ms,
                        tenrec_error *err)
{
    long status = 0;
    CURLcode r;

    p->answer_len = 0;
    memset(p->shown, 0, sizeof p->shown);
    p->why[0] = '\0';
    curl_easy_setopt(p->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
    curl_easy_setopt(p->curl, CURLOPT_POSTFIELDS, (const char *)body);
    curl_easy_setopt(p->curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    r = curl_easy_perform(p->curl);
    if (r != CURLE_OK)
        return tenrec_fail(err, r == CURLE_OPERATION_TIMEDOUT ? TENREC_ETIMEDOUT : TENREC_ECONNECT,
                           "%s: %s", p->url, *p->why ? p->why : curl_easy_strerror(r));
    curl_easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
    return post_status(p, status, err);
}
