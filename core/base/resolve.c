/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/resolve.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/base/threads.h"

#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A lookup on a helper thread, since getaddrinfo has no deadline. The later of the two threads
 * to leave frees it. */
struct lookup {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    char *host;
    char service[8];
    struct addrinfo *list;
    int result;
    bool done, left; /* guarded by lock */
};

static void lookup_free(struct lookup *l)
{
    if (l->list)
        freeaddrinfo(l->list);
    pthread_cond_destroy(&l->cond);
    pthread_mutex_destroy(&l->lock);
    free(l->host);
    free(l);
}

static int look_up(const char *host, const char *service, int flags, struct addrinfo **ret)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };

    *ret = NULL;
    return getaddrinfo(host, service, &hints, ret);
}

static void *lookup_run(void *arg)
{
    struct lookup *l = arg;
    bool left;

    l->result = look_up(l->host, l->service, AI_ADDRCONFIG, &l->list);
    pthread_mutex_lock(&l->lock);
    l->done = true;
    left = l->left;
    pthread_cond_signal(&l->cond);
    pthread_mutex_unlock(&l->lock);
    if (left)
        lookup_free(l);
    return NULL;
}

static struct lookup *lookup_start(const char *host, const char *service)
{
    struct lookup *l = memory_new(1, sizeof *l);
    pthread_t thread;

    if (!l || !(l->host = memory_text(host))) {
        free(l);
        return NULL;
    }
    snprintf(l->service, sizeof l->service, "%s", service);
    pthread_mutex_init(&l->lock, NULL);
    clock_cond_init(&l->cond);
    if (threads_start(&thread, "tenrec-lookup", lookup_run, l) != 0) {
        lookup_free(l);
        return NULL;
    }
    pthread_detach(thread);
    return l;
}

/* Waits for the lookup. Returns false if it is left to its thread. */
static bool lookup_wait(struct lookup *l, uint64_t deadline_ns)
{
    bool done;

    pthread_mutex_lock(&l->lock);
    while (!l->done && clock_cond_wait(&l->cond, &l->lock, deadline_ns))
        ;
    done = l->done;
    l->left = !done;
    pthread_mutex_unlock(&l->lock);
    return done;
}

static size_t take_addresses(const struct addrinfo *list, struct address ret[RESOLVE_MAX])
{
    size_t n = 0;

    for (; list && n < RESOLVE_MAX; list = list->ai_next) {
        if (list->ai_family != AF_INET && list->ai_family != AF_INET6)
            continue;
        memset(&ret[n], 0, sizeof ret[n]);
        memcpy(&ret[n].addr, list->ai_addr, list->ai_addrlen);
        ret[n++].len = list->ai_addrlen;
    }
    return n;
}

tenrec_status resolve_host(const char *host, uint16_t port, uint64_t deadline_ns,
                           struct address ret[RESOLVE_MAX], size_t *ret_n, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    struct addrinfo *list;
    struct lookup *l;
    char service[8];
    int r;

    snprintf(service, sizeof service, "%u", port);
    r = look_up(host, service, AI_NUMERICHOST | AI_NUMERICSERV, &list);
    if (r == 0) {
        *ret_n = take_addresses(list, ret);
        freeaddrinfo(list);
        return TENREC_OK;
    }
    if (!(l = lookup_start(host, service)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory to look up host \"%s\"", host);
    if (!lookup_wait(l, deadline_ns))
        return tenrec_fail(err, TENREC_ETIMEDOUT, "the lookup of host \"%s\" timed out", host);
    if (l->result != 0)
        st = tenrec_fail(err, TENREC_ECONNECT, "cannot look up host \"%s\": %s", host,
                         gai_strerror(l->result));
    else if ((*ret_n = take_addresses(l->list, ret)) == 0)
        st = tenrec_fail(err, TENREC_ECONNECT, "host \"%s\" has no IP address", host);
    lookup_free(l);
    return st;
}

tenrec_status resolve_split(const char *text, char *ret_host, size_t room, uint16_t *ret_port,
                            tenrec_error *err)
{
    const char *colon = strrchr(text, ':'), *end = colon;
    bool bracket = text[0] == '[';
    unsigned long port = 0;
    char *stop;

    if (strchr(text, '@')) /* not quoted: it may contain a password */
        return tenrec_fail(err, TENREC_EINVAL, "expected host:port without user and password");
    if (!colon || colon == text || (bracket && (colon < text + 2 || colon[-1] != ']')))
        return tenrec_fail(err, TENREC_EINVAL, "\"%s\" is no host:port", text);
    if (!bracket && memchr(text, ':', (size_t)(colon - text)))
        return tenrec_fail(err, TENREC_EINVAL,
                           "\"%s\" is no host:port; write an IPv6 address as [address]:port", text);
    if (colon[1] >= '0' && colon[1] <= '9')
        port = strtoul(colon + 1, &stop, 10);
    if (port == 0 || port > 65535 || *stop)
        return tenrec_fail(err, TENREC_EINVAL, "port \"%s\" is not within 1..65535", colon + 1);
    text += bracket;
    end -= bracket;
    if ((size_t)(end - text) >= room)
        return tenrec_fail(err, TENREC_EINVAL, "host name of %zu characters is too long",
                           (size_t)(end - text));
    memcpy(ret_host, text, (size_t)(end - text));
    ret_host[end - text] = '\0';
    *ret_port = (uint16_t)port;
    return TENREC_OK;
}
