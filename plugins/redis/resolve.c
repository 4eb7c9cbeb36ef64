/* SPDX-License-Identifier: Apache-2.0 */
#include "conn.h"

#include <stdlib.h>

/* One lookup on a thread of the C library, with all memory that the thread uses. */
struct lookup {
    struct gaicb cb;
    struct addrinfo hints;
    char host[256];
    char service[8];
};

/* Waits for the lookup; EAI_INPROGRESS when the deadline expires first. */
static int resolve_await(struct lookup *l, uint64_t deadline_ns)
{
    const struct gaicb *const list[] = { &l->cb };

    while (gai_error(&l->cb) == EAI_INPROGRESS) {
        int ms = clock_left_ms(deadline_ns);
        struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
        if (ms == 0)
            break;
        gai_suspend(list, 1, ms < 0 ? NULL : &left);
    }
    return gai_error(&l->cb);
}

static tenrec_status look_up(const char *host, const char *service, uint64_t deadline_ns,
                             struct addrinfo **ret, tenrec_error *err)
{
    struct lookup *l = calloc(1, sizeof *l);
    struct gaicb *list[1];
    int result;

    if (!l)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory to look up host \"%s\"", host);
    snprintf(l->host, sizeof l->host, "%s", host);
    snprintf(l->service, sizeof l->service, "%s", service);
    l->hints = (struct addrinfo){ .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
    l->cb = (struct gaicb){ .ar_name = l->host, .ar_service = l->service, .ar_request = &l->hints };
    list[0] = &l->cb;
    result = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);
    if (result == 0)
        result = resolve_await(l, deadline_ns);
    if (result == EAI_INPROGRESS) {
        /* A lookup that cannot be canceled still writes here: leak its memory. */
        if (gai_cancel(&l->cb) != EAI_NOTCANCELED)
            free(l);
        return tenrec_fail(err, TENREC_ETIMEDOUT, "the lookup of host \"%s\" timed out", host);
    }
    *ret = l->cb.ar_result;
    free(l);
    return result == 0 ? TENREC_OK
                       : tenrec_fail(err, TENREC_ECONNECT, "cannot look up host \"%s\": %s", host,
                                     gai_strerror(result));
}

tenrec_status resolve(const char *host, uint16_t port, uint64_t deadline_ns, struct addrinfo **ret,
                      tenrec_error *err)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST };
    char service[8];

    snprintf(service, sizeof service, "%u", port);
    if (getaddrinfo(host, service, &hints, ret) == 0)
        return TENREC_OK;
    return look_up(host, service, deadline_ns, ret, err);
}
