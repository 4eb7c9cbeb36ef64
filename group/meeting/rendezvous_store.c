/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/meeting.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/resolve.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define VISIT_MS 1000

/* The port is `taken`. A store that answers there with the security of this group is shared, unless
 * it is that of a living group of the same name, whose ranks are taken. The wait is short: the port
 * may belong to any other program. */
static tenrec_status share_member_tcp(const struct rendezvous_options *o, struct rendezvous *r,
                                      uint64_t deadline_ns, const tenrec_error *taken,
                                      tenrec_error *err)
{
    const struct launch *l = &r->launch;
    const uint64_t soon = clock_deadline_ms(VISIT_MS);
    tenrec_error why;

    if (store_tcp_open(l->host, l->port, o->security, soon < deadline_ns ? soon : deadline_ns,
                       &r->store, &why) == TENREC_OK) {
        log_line(TENREC_LOG_INFO, "rendezvous",
                 "a store already runs at %s:%u: group \"%s\" shares it, as long as it runs",
                 l->host, (unsigned)l->port, o->group);
        return TENREC_OK;
    }
    if (err)
        tenrec_fail_errno(err, taken->code, taken->os_errno,
                          "%.200s; nor does a store of this group's security answer there "
                          "(%.160s): use another port",
                          taken->text, why.text);
    return taken->code;
}

/* Rank 0 serves, unless the launcher does; all connect. Only a loopback address is bound as given:
 * a host often resolves its own name to another address than other hosts do. */
static tenrec_status open_member_tcp(const struct rendezvous_options *o, struct rendezvous *r,
                                     uint64_t deadline_ns, tenrec_error *err)
{
    const struct launch *l = &r->launch;
    bool local = advertise_address_is_loopback(l->host);
    const char *host = l->host;
    tenrec_error why;
    tenrec_status st;

    r->member_serves = !l->agent_store;
    if (r->member_serves && l->rank == 0) {
        st = store_server_open(o->loop, local ? l->host : NULL, l->port, o->security, &r->server,
                               NULL, &why);
        if (st != TENREC_OK && why.os_errno == EADDRINUSE && !r->dynamic)
            return share_member_tcp(o, r, deadline_ns, &why, err);
        /* Id 0 of a dynamic group may join when the store exists already. */
        if (st != TENREC_OK && why.os_errno != EADDRINUSE) {
            if (err)
                *err = why;
            return st;
        }
        if (st == TENREC_OK && !local)
            host = "127.0.0.1";
    }
    return store_tcp_open(host, l->port, o->security, deadline_ns, &r->store, err);
}

/* A visitor's store must exist already: retries a refused connection for a second only. A slow
 * store gets all the time. */
static tenrec_status open_visited_tcp(const struct rendezvous_options *o, struct rendezvous *r,
                                      uint64_t deadline_ns, tenrec_error *err)
{
    const struct launch *l = &r->launch;
    uint64_t soon = clock_deadline_ms(VISIT_MS);
    tenrec_status st = store_tcp_open(l->host, l->port, o->security,
                                      soon < deadline_ns ? soon : deadline_ns, &r->store, err);

    if (st != TENREC_OK && st != TENREC_ECONNECT && st != TENREC_EPERM && soon < deadline_ns)
        st = store_tcp_open(l->host, l->port, o->security, deadline_ns, &r->store, err);
    return st;
}

static tenrec_status open_tcp(const struct rendezvous_options *o, struct rendezvous *r,
                              uint64_t deadline_ns, tenrec_error *err)
{
    return r->visitor ? open_visited_tcp(o, r, deadline_ns, err)
                      : open_member_tcp(o, r, deadline_ns, err);
}

/* Opening a file as a store creates it, which a visitor must not. */
static tenrec_status open_file(struct rendezvous *r, const char *path, uint64_t deadline_ns,
                               tenrec_error *err)
{
    const bool counted = !r->visitor && !r->dynamic;

    if (r->visitor && access(path, R_OK | W_OK) != 0)
        return tenrec_fail_errno(err, TENREC_ENOTFOUND, errno, "no store at \"%s\"", path);
    return store_file_open(path, counted ? (uint32_t)r->launch.world : 0, deadline_ns, &r->store,
                           err);
}

/* A file whose name can be guessed must be ours. */
static tenrec_status check_owner(const char *path, tenrec_error *err)
{
    struct stat st;

    if (lstat(path, &st) != 0 || st.st_uid == geteuid())
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EOS,
                       "file \"%s\" belongs to another user: remove it, or set "
                       "MASTER_ADDR and MASTER_PORT",
                       path);
}

/* Opens a private store for a process alone. */
static tenrec_status open_alone(struct rendezvous *r, tenrec_error *err)
{
    struct launch *l = &r->launch;
    char name[64];

    snprintf(l->store_source, sizeof l->store_source, "this process alone");
    snprintf(name, sizeof name, "alone-%p", (void *)r);
    return store_memory_open(name, &r->store, err);
}

static tenrec_status open_env(const struct rendezvous_options *o, struct rendezvous *r,
                              uint64_t deadline_ns, tenrec_error *err)
{
    struct launch *l = &r->launch;
    tenrec_status st = TENREC_OK;

    if (r->visitor)
        st = launch_detect(-1, -1, l, err);
    if (st == TENREC_OK)
        st = launch_find_store(l, err);
    if (st == TENREC_OK && *l->file) {
        st = check_owner(l->file, err);
        return st == TENREC_OK ? open_file(r, l->file, deadline_ns, err) : st;
    }
    if (st == TENREC_OK)
        return open_tcp(o, r, deadline_ns, err);
    if (secure_getenv("MASTER_ADDR") || secure_getenv("MASTER_PORT"))
        return st;
    if (r->visitor && l->world < 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "the address of the group's store is missing: set MASTER_ADDR and "
                           "MASTER_PORT as for its workers");
    return r->visitor || l->world != 1 ? st : open_alone(r, err);
}

/* Opens a plugin's store. No member serves it, so no member waits for others when it leaves. */
static tenrec_status open_other(const struct rendezvous_options *o, const char *url,
                                struct rendezvous *r, uint64_t deadline_ns, tenrec_error *err)
{
    struct launch *l = &r->launch;
    tenrec_status st;

    st = store_open_url(url, o->security, o->stores, deadline_ns, &r->store, err);
    if (st == TENREC_OK && r->store->base->self.ops->lacks & TENREC_STORE_LACKS_COMPARE)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "%s has no compare_set: no group can meet there",
                           tenrec_store_name(r->store));
    if (st == TENREC_OK && *store_at(r->store))
        resolve_split(store_at(r->store), l->host, sizeof l->host, &l->port, NULL);
    return st;
}

tenrec_status rendezvous_store_open(const struct rendezvous_options *o,
                                    const struct init_method *method, struct rendezvous *r,
                                    uint64_t deadline_ns, tenrec_error *err)
{
    struct launch *l = &r->launch;
    tenrec_status st;

    switch (method->kind) {
    case INIT_ENV:
        return open_env(o, r, deadline_ns, err);
    case INIT_TCP:
        st = resolve_split(method->text, l->host, sizeof l->host, &l->port, err);
        return st == TENREC_OK ? open_tcp(o, r, deadline_ns, err) : st;
    case INIT_FILE:
        return open_file(r, method->text, deadline_ns, err);
    case INIT_MEMORY:
        snprintf(l->host, sizeof l->host, "%s", method->host ? method->host : "");
        return store_memory_open(method->text, &r->store, err);
    case INIT_OTHER:
        return open_other(o, method->text, r, deadline_ns, err);
    }
    return TENREC_EINVAL;
}
