/* SPDX-License-Identifier: Apache-2.0 */
#include "link_support.h"

#include "../region/region_support.h"
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../testing.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static const char *mode = "none";

void alone_use(const char *backend, const char *security)
{
    cluster_use(backend);
    mode = security;
}

static void set(struct tenrec_config *config, const char *key, const char *value)
{
    tenrec_error err;

    assert_status(tenrec_config_set(config, key, value, &err), &err);
}

/* `own`: of this worker alone. */
static void write_secret(const char *own, char path[64])
{
    char text[80];
    int fd, len;

    snprintf(path, 64, "/tmp/tenrec-link-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    len = snprintf(text, sizeof text, "the secret of the workers %s", own);
    assert_int_equal(write(fd, text, (size_t)len), len);
    close(fd);
}

/* Reads a region of the caller until that fails, and returns the status. */
static tenrec_status read_on(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const struct tenrec_region_ref *ref;
    struct tenrec_tensor *local;
    struct tenrec_bulk e;
    struct tenrec_value v;
    tenrec_status st = tenrec_call_get_args(c, err, "g", &ref);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    local = bytes_new((int64_t)ref->length, 0);
    e = reading(ref, 0, ref->length, local, 0);
    while (st == TENREC_OK)
        st = transfer(tenrec_call_worker(c), &e, 1, err);
    tenrec_tensor_drop(local);
    v = tenrec_value_int(st);
    return tenrec_call_return(c, &v, err);
}

struct tenrec_worker *alone_new(const char *name)
{
    static atomic_uint stores;
    struct tenrec_config *config = cluster_config();
    struct tenrec_worker *w;
    char text[64], path[64] = "";
    tenrec_error err;

    snprintf(text, sizeof text, "memory://alone%u?rank=0&world_size=1",
             atomic_fetch_add(&stores, 1));
    set(config, "init_method", text);
    set(config, "worker.name", name);
    if (strcmp(mode, "none") != 0) {
        write_secret(strcmp(mode, "own") == 0 ? name : "all", path);
        set(config, "security.mode", strcmp(mode, "own") == 0 ? "secret" : mode);
        set(config, "security.secret_file", path);
    }
    assert_status(tenrec_worker_new(config, &w, &err), &err);
    tenrec_config_drop(config);
    functions_register(w, 0);
    functions_offer(w, "read_on", read_on, 0);
    assert_status(tenrec_init_rpc(w, &err), &err);
    if (*path)
        unlink(path);
    return w;
}

void alone_drop(struct tenrec_worker *w)
{
    tenrec_error err;

    assert_status(tenrec_shutdown(w, TENREC_GRACEFUL, CLUSTER_LONG_MS, &err), &err);
    tenrec_worker_drop(w);
}

struct record record_of(struct tenrec_worker *w)
{
    struct record r;
    tenrec_error err;

    assert_status(tenrec_link_bind(w, strcmp(mode, "own") == 0 ? TENREC_LINK_WITH_SECRET : 0,
                                   r.bytes, &r.len, &err),
                  &err);
    assert_true(r.len <= sizeof r.bytes);
    return r;
}

struct tenrec_link *link_to(struct tenrec_worker *w, const struct record *r)
{
    struct tenrec_link *l;
    tenrec_error err;

    assert_status(tenrec_link_connect(w, r->bytes, r->len, &l, &err), &err);
    return l;
}

void link_both(struct tenrec_worker *a, struct tenrec_worker *b, struct tenrec_link *ret[2])
{
    const struct record of_a = record_of(a), of_b = record_of(b);

    ret[0] = link_to(a, &of_b);
    ret[1] = link_to(b, &of_a);
}
