/* SPDX-License-Identifier: Apache-2.0 */
#include "otlp.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#define PATH "/v1/traces" /* of the protocol */

/* A part of the URL; NULL: it has none. Owns: curl_free it. */
static char *part_of(CURLU *url, CURLUPart part)
{
    char *text = NULL;

    return curl_url_get(url, part, &text, 0) == CURLUE_OK ? text : NULL;
}

static bool has_part(CURLU *url, CURLUPart part)
{
    char *text = part_of(url, part);
    const bool has = text != NULL;

    curl_free(text);
    return has;
}

/* The address is not quoted where it may have a password. */
static tenrec_status collector_check(CURLU *url, const char *address, struct collector *ret,
                                     tenrec_error *err)
{
    char *scheme = part_of(url, CURLUPART_SCHEME), *host = part_of(url, CURLUPART_HOST);
    const bool http = scheme && strcmp(scheme, "http") == 0;
    tenrec_status st = TENREC_OK;

    if (has_part(url, CURLUPART_USER) || has_part(url, CURLUPART_PASSWORD))
        st = tenrec_fail(err, TENREC_EINVAL,
                         "the address of a collector has no user and password: give the option "
                         "'headers' an 'authorization'");
    else if (!http && !(scheme && strcmp(scheme, "https") == 0))
        st = tenrec_fail(err, TENREC_EINVAL, "'%s': expected http:// or https://", address);
    else if (has_part(url, CURLUPART_FRAGMENT))
        st = tenrec_fail(err, TENREC_EINVAL, "'%s': a collector has no '#'", address);
    ret->plain = http;
    ret->host = strdup(host ? host : "");
    if (st == TENREC_OK && !ret->host)
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory");
    curl_free(scheme);
    curl_free(host);
    return st;
}

static tenrec_status collector_complete(CURLU *url, struct collector *ret, tenrec_error *err)
{
    char *path = part_of(url, CURLUPART_PATH), *whole = NULL;
    CURLUcode r = CURLUE_OK;

    if (!path || strcmp(path, "/") == 0)
        r = curl_url_set(url, CURLUPART_PATH, PATH, 0);
    curl_free(path);
    if (r == CURLUE_OK)
        r = curl_url_get(url, CURLUPART_URL, &whole, 0);
    ret->url = r == CURLUE_OK ? strdup(whole) : NULL;
    curl_free(whole);
    return ret->url ? TENREC_OK : tenrec_fail(err, TENREC_ENOMEM, "no memory");
}

tenrec_status collector_parse(const char *address, struct collector *ret, tenrec_error *err)
{
    CURLU *url = curl_url();
    CURLUcode r;
    tenrec_status st;

    *ret = (struct collector){ .url = NULL };
    if (!url)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory");
    /* Without a scheme it would be guessed. */
    r = curl_url_set(url, CURLUPART_URL, address, CURLU_NON_SUPPORT_SCHEME);
    if (r != CURLUE_OK)
        st = tenrec_fail(err, TENREC_EINVAL,
                         "the address of a collector is no URL such as http://collector:4318: %s",
                         curl_url_strerror(r));
    else
        st = collector_check(url, address, ret, err);
    if (st == TENREC_OK)
        st = collector_complete(url, ret, err);
    curl_url_cleanup(url);
    if (st != TENREC_OK)
        collector_finish(ret);
    return st;
}

void collector_finish(struct collector *c)
{
    free(c->url);
    free(c->host);
    *c = (struct collector){ .url = NULL };
}
