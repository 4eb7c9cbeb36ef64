/* SPDX-License-Identifier: Apache-2.0 */
#include "prometheus.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECTIONS = 32,  /* at once; further ones are closed */
    IDLE_S = 10,       /* a silent connection is closed */
    MEMORY = 16 << 10, /* bytes for the head of a request */
};

static enum MHD_Result endpoint_reply(struct MHD_Connection *c, unsigned status, char *text,
                                      size_t len, enum MHD_ResponseMemoryMode mode,
                                      const char *type)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(len, text, mode);
    enum MHD_Result sent;

    if (!r) {
        if (mode == MHD_RESPMEM_MUST_FREE)
            free(text);
        return MHD_NO;
    }
    MHD_add_response_header(r, "Content-Type", type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(r, "Allow", "GET, HEAD");
    sent = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return sent;
}

static enum MHD_Result endpoint_refuse(struct MHD_Connection *c, unsigned status, const char *text)
{
    return endpoint_reply(c, status, (char *)(uintptr_t)text, strlen(text), MHD_RESPMEM_PERSISTENT,
                          "text/plain; charset=utf-8");
}

/* A body of a request is not read: the answer closes the connection. */
static enum MHD_Result endpoint_answer(void *arg, struct MHD_Connection *c, const char *url,
                                       const char *method, const char *version, const char *body,
                                       size_t *body_len, void **state)
{
    const struct endpoint *e = arg;
    tenrec_error err;
    char *text;
    size_t len;

    (void)version;
    (void)body;
    (void)body_len;
    (void)state;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return endpoint_refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is served\n");
    if (strcmp(url, "/metrics") != 0)
        return endpoint_refuse(c, MHD_HTTP_NOT_FOUND, "the metrics are at /metrics\n");
    if (e->fn(e->arg, &text, &len, &err) != TENREC_OK)
        return endpoint_refuse(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
    return endpoint_reply(c, MHD_HTTP_OK, text, len, MHD_RESPMEM_MUST_FREE,
                          "text/plain; version=0.0.4; charset=utf-8");
}

tenrec_status endpoint_start(struct endpoint *e, int listener, tenrec_error *err)
{
    e->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL, NULL, endpoint_answer, e,
        MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)MEMORY, MHD_OPTION_END);
    return e->daemon ? TENREC_OK : tenrec_fail(err, TENREC_EOS, "libmicrohttpd cannot start");
}

void endpoint_stop(struct endpoint *e)
{
    if (e->daemon)
        MHD_stop_daemon(e->daemon);
    e->daemon = NULL;
}
