/* SPDX-License-Identifier: Apache-2.0 */
#include "secrets.h"
#include "../../support/debug_info.h"

#include "../../support/functions.h"
#include "core/backend/backend.h"
#include "group/meeting/membership.h"
#include "raw.h"
#include "rpc/future/worker.h"
#include "rpc/worker/worker.h"
#include "transport/transport_local.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <unistd.h>

#define HEAD 8 /* of a record: magic, version, kind, two bytes of length */
#define KIND_REFUSED 5

static char folder[64], path[3][96], store_url[64];
static struct secret *secret[3];

void secrets_make(void)
{
    tenrec_error err;

    snprintf(folder, sizeof folder, "/tmp/tenrec_proof_XXXXXX");
    assert_non_null(mkdtemp(folder));
    for (int i = OUR_SECRET; i <= OTHER_SECRET; i++) {
        snprintf(path[i], sizeof path[i], "%s/secret%d", folder, i);
        assert_status(secret_draw(&secret[i], &err), &err);
        assert_status(secret_write_file(secret[i], path[i], &err), &err);
    }
}

void secrets_remove(void)
{
    for (int i = OUR_SECRET; i <= OTHER_SECRET; i++) {
        unlink(path[i]);
        secret_drop(secret[i]);
    }
    rmdir(folder);
}

struct secret *secrets_get(enum secret_of which)
{
    return secret[which];
}

void secrets_use(enum secret_of which)
{
    if (which == NO_SECRET)
        unsetenv("TENREC_SECRET_FILE");
    else
        setenv("TENREC_SECRET_FILE", path[which], 1);
}

/* ---- workers ---- */

static void *secrets_init(void *arg)
{
    struct tenrec_worker *w = arg;
    tenrec_error err;

    return tenrec_init_rpc(w, &err) == TENREC_OK ? w : NULL;
}

void (*secrets_configure)(struct tenrec_config *config, int rank);

static struct tenrec_worker *secrets_worker(unsigned store, int rank, enum secret_of which)
{
    struct tenrec_config *config = cluster_config();
    struct tenrec_worker *w;
    char text[64];
    tenrec_error err;

    secrets_use(which);
    if (secrets_configure)
        secrets_configure(config, rank);
    snprintf(text, sizeof text, "memory://secrets%u?rank=%d&world_size=2", store, rank);
    assert_status(tenrec_config_set(config, "init_method", text, &err), &err);
    assert_status(tenrec_worker_new(config, &w, &err), &err);
    tenrec_config_drop(config);
    functions_register(w, (size_t)rank);
    return w;
}

void secrets_group(struct cluster *c, enum secret_of first, enum secret_of second)
{
    static atomic_uint stores;
    const unsigned store = atomic_fetch_add(&stores, 1);
    pthread_t thread[2];
    void *started;

    snprintf(store_url, sizeof store_url, "memory://secrets%u", store);
    c->n = 2;
    c->worker[0] = secrets_worker(store, 0, first);
    c->worker[1] = secrets_worker(store, 1, second);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, secrets_init, c->worker[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], &started);
        assert_non_null(started);
    }
}

const char *secrets_store(void)
{
    return store_url;
}

struct found {
    const char *key;
    bool is_there;
    char value[256];
};

static void find(void *arg, const char *key, const char *value)
{
    struct found *f = arg;

    if (strncmp(key, "tensorpipe.", 11) == 0 && strcmp(key + 11, f->key) == 0) {
        snprintf(f->value, sizeof f->value, "%s", value);
        f->is_there = true;
    }
}

static struct found look_up(struct tenrec_worker *w, const char *key)
{
    struct found f = { .key = key };

    debug_info_each(w, find, &f);
    if (!f.is_there)
        fail_msg("debug info has no \"tensorpipe.%s\"", key);
    return f;
}

uint64_t secrets_counter(struct tenrec_worker *w, const char *key)
{
    return strtoull(look_up(w, key).value, NULL, 10);
}

bool secrets_tells(struct tenrec_worker *w, const char *key, const char *part)
{
    const struct found f = look_up(w, key);

    return strstr(f.value, part) != NULL;
}

/* ---- by hand ---- */

struct proof_party secrets_party(struct tenrec_worker *w)
{
    return (struct proof_party){ w->self.id, membership_incarnation(group_of(w)->membership),
                                 w->self.name, chain_address(w->chain) };
}

int by_hand_connect(const char *address)
{
    const struct timeval limit = { 20, 0 };
    const char *name = strstr(address, "://") + 3;
    const bool is_tls = strncmp(address, "tls:", 4) == 0;
    union transport_address at;
    tenrec_error err;
    int fd;

    if (is_tls || strncmp(address, "uv:", 3) == 0)
        return raw_connect(address + is_tls); /* which knows addresses of uv */
    assert_status(local_parse(name, strlen(name), &at, &err), &err);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(local_connect(fd, &at), 0);
    return fd;
}

struct by_hand by_hand_dial(enum secret_of which, const struct proof_party *me,
                            struct tenrec_worker *to, uint64_t label)
{
    unsigned char id[8];
    const struct proof_terms terms = { .side = PROOF_DIALLER,
                                       .secret = secret[which],
                                       .purpose = "tensorpipe",
                                       .me = *me,
                                       .peer = secrets_party(to),
                                       .label = id,
                                       .label_len = label ? sizeof id : 0 };
    struct by_hand h = { .fd = by_hand_connect(chain_address(to->chain)) };
    tenrec_error err;

    for (int i = 0; i < 8; i++)
        id[i] = (unsigned char)(label >> 8 * i);
    assert_status(proof_open(&terms, &h.proof, &err), &err);
    return h;
}

void by_hand_send(struct by_hand *h, size_t step)
{
    size_t len;
    const unsigned char *out = proof_output(h->proof, &len);

    for (size_t at = 0; at < len; at += step)
        raw_send(h->fd, out + at, step < len - at ? step : len - at);
}

size_t by_hand_read(const struct by_hand *h, unsigned char ret[PROOF_RECORD_MAX])
{
    size_t body;

    if (!raw_recv(h->fd, ret, HEAD))
        return 0;
    body = ret[6] | (size_t)ret[7] << 8;
    assert_true(HEAD + body <= PROOF_RECORD_MAX);
    return raw_recv(h->fd, ret + HEAD, body) ? HEAD + body : 0;
}

tenrec_status by_hand_take(struct by_hand *h, tenrec_error *err)
{
    unsigned char record[PROOF_RECORD_MAX];
    size_t used, len = by_hand_read(h, record);

    if (!len)
        return tenrec_fail(err, TENREC_ECONNECT, "closed");
    return proof_take(h->proof, record, len, &used, err);
}

tenrec_status by_hand_prove(struct by_hand *h, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    while (st == TENREC_OK && !proof_is_complete(h->proof)) {
        by_hand_send(h, SIZE_MAX);
        st = by_hand_take(h, err);
    }
    return st;
}

void by_hand_close(struct by_hand *h)
{
    proof_close(h->proof);
    close(h->fd);
}

bool record_refuses(const unsigned char *record, size_t len)
{
    return len > HEAD && proof_begins(record, len) && record[5] == KIND_REFUSED;
}
