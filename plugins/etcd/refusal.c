/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.c - what an answer that is an error means, by its code of gRPC and its text. */
#include "etcd.h"

#include <string.h>

enum {
    INVALID = 3,
    NOT_FOUND = 5,
    DENIED = 7,
    EXHAUSTED = 8,
    FAILED = 9,
    UNAVAILABLE = 14,
    UNAUTHENTICATED = 16
};

#define ANY (-1)

/* The first row whose code and part of the text fit. */
static const struct row {
    int code;
    const char *part;
    enum http_end end;
    tenrec_status st;
    const char *text; /* NULL: the server's */
} rows[] = {
    { INVALID, "request is too large", HTTP_NEVER, TENREC_ETOOBIG,
      "the value is larger than the server takes (--max-request-bytes)" },
    { EXHAUSTED, "database space exceeded", HTTP_NEVER, TENREC_ETOOBIG,
      "the server is full (--quota-backend-bytes; an alarm must be disarmed)" },
    { EXHAUSTED, "", HTTP_AGAIN, TENREC_EPEER_LOST, NULL },
    { NOT_FOUND, "lease not found", HTTP_NEVER, TENREC_EPEER_LOST, NULL }, /* answer_lost */
    { INVALID, "revision of auth store is old", HTTP_OK, TENREC_EPERM, NULL },
    { UNAUTHENTICATED, "", HTTP_OK, TENREC_EPERM, NULL },
    { INVALID, "user name is empty", HTTP_NEVER, TENREC_ECONFIG,
      "the server requires a user and a password" },
    { INVALID, "authentication failed", HTTP_NEVER, TENREC_ECONFIG,
      "the server refuses the user or the password" },
    { FAILED, "authentication is not enabled", HTTP_NEVER, TENREC_ECONFIG,
      "a user is given, but the server has no users" },
    { DENIED, "", HTTP_NEVER, TENREC_ECONFIG,
      "the user lacks a permission: it needs readwrite of the prefix" },
    { UNAVAILABLE, "", HTTP_AGAIN, TENREC_EPEER_LOST, NULL }, /* no leader, it changed, ... */
    { ANY, "", HTTP_NEVER, TENREC_EPROTOCOL, NULL },
};

static enum http_end refused_without_code(long status, tenrec_error *err)
{
    if (status == 404)
        tenrec_fail(err, TENREC_EUNSUPPORTED,
                    "the server has no JSON gateway at /v3/: it is no etcd since 3.4, or runs with "
                    "--enable-grpc-gateway=false");
    else if (status == 502 || status == 503 || status == 504)
        tenrec_fail(err, TENREC_EPEER_LOST, "the server is busy (HTTP %ld)", status);
    else
        tenrec_fail(err, TENREC_EPROTOCOL, "the answer is not from etcd (HTTP %ld)", status);
    return status >= 502 && status <= 504 ? HTTP_AGAIN : HTTP_NEVER;
}

enum http_end etcd_refused(long status, const json_t *answer, tenrec_error *err)
{
    const char *from = json_string_value(json_object_get(answer, "error"));
    const json_int_t code = json_integer_value(json_object_get(answer, "code"));
    const struct row *row = rows;
    char text[200];

    if (!from || status == 200)
        return refused_without_code(status, err);
    while ((row->code != ANY && row->code != code) || !strstr(from, row->part))
        row++;
    http_line(from, sizeof text, text);
    if (row->code == NOT_FOUND)
        answer_lost(err);
    else
        tenrec_fail(err, row->st, "%s", row->text ? row->text : text);
    return row->end;
}
