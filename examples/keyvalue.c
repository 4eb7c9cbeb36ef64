/* SPDX-License-Identifier: Apache-2.0 */
/* keyvalue.c - a table of keys and values in shards: tenrec run -n 3 -- keyvalue
 *
 * Each worker owns the keys whose hash is its rank, and keeps any value: numbers, text, tensors.
 * Each puts a tensor, and gets those of the others. */
#include <pthread.h>
#include <stdio.h>
#include <tenrec/tenrec.h>

enum { ROOM = 64, KEY_MAX = 31, N = 1000 };

struct shard {
    pthread_mutex_t lock; /* guards all below */
    size_t n;
    char key[ROOM][KEY_MAX + 1];
    struct tenrec_value *value[ROOM];
};

static size_t shard_find(const struct shard *s, const char *key)
{
    size_t i = 0;

    while (i < s->n && strcmp(s->key[i], key) != 0)
        i++;
    return i;
}

/* put(key, value) */
static tenrec_status put(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const struct tenrec_value *given;
    struct tenrec_value *copy = NULL;
    struct shard *s = arg;
    const char *key;
    size_t i;

    if (tenrec_call_get_args(call, err, "sv", &key, &given))
        return err->code;
    if (strlen(key) > KEY_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "key '%s' is longer than %d bytes", key, KEY_MAX);
    if (tenrec_value_copy(given, &copy, err))
        return err->code;
    pthread_mutex_lock(&s->lock);
    i = shard_find(s, key);
    if (i < ROOM) {
        struct tenrec_value *former = s->value[i];

        snprintf(s->key[i], sizeof s->key[i], "%s", key);
        s->value[i] = copy;
        copy = former;
        s->n += i == s->n;
    }
    pthread_mutex_unlock(&s->lock);
    tenrec_value_drop(copy);
    return i < ROOM ? TENREC_OK : tenrec_fail(err, TENREC_ETOOBIG, "%d keys are the most", ROOM);
}

/* get(key): returns the value. */
static tenrec_status get(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct shard *s = arg;
    const char *key;
    tenrec_status status;
    size_t i;

    if (tenrec_call_get_args(call, err, "s", &key))
        return err->code;
    pthread_mutex_lock(&s->lock);
    i = shard_find(s, key);
    status = i < s->n ? tenrec_call_return(call, s->value[i], err)
                      : tenrec_fail(err, TENREC_ENOTFOUND, "no key '%s'", key);
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* The name of the worker that owns a key. */
static const char *owner_of(struct tenrec_worker *w, const char *key,
                            struct tenrec_worker_info *info)
{
    const size_t size = tenrec_worker_size(w); /* 0 once it has left */
    uint32_t hash = 0;

    for (const char *c = key; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    tenrec_worker_get_info_by_id(w, (tenrec_peer)(size ? hash % size : 0), info, NULL);
    return info->name;
}

static tenrec_status use(struct tenrec_worker *w, tenrec_error *err)
{
    struct tenrec_worker_info owner;
    struct tenrec_tensor *t = NULL;
    char key[KEY_MAX + 1];
    double sum = 0;
    tenrec_status status = tenrec_tensor_new(TENREC_FLOAT32, 1, (int64_t[]){ N }, &t, err);

    for (int i = 0; i < N && !status; i++)
        ((float *)tenrec_tensor_data(t))[i] = (float)tenrec_worker_rank(w);
    snprintf(key, sizeof key, "tensor of %d", tenrec_worker_rank(w));
    if (!status)
        status =
            tenrec_call(w, owner_of(w, key, &owner), "put", err, "sv", key, tenrec_value_tensor(t));
    tenrec_tensor_drop(t);
    if (!status)
        status = tenrec_worker_barrier(w, NULL, 0, TENREC_TIMEOUT_DEFAULT, err);
    for (size_t i = 0; i < tenrec_worker_size(w) && !status; i++) {
        snprintf(key, sizeof key, "tensor of %zu", i);
        status = tenrec_call(w, owner_of(w, key, &owner), "get", err, "s>Tf[1000]", key, &t);
        for (int k = 0; k < N && !status; k++)
            sum += (double)((const float *)tenrec_tensor_data(t))[k];
        tenrec_tensor_drop(t);
    }
    if (!status)
        printf("the sum of all is %.0f\n", sum);
    return status;
}

int main(void)
{
    static struct shard s = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    const bool failed = tenrec_worker_new(NULL, &w, &err) ||
                        tenrec_worker_register_function(w, "put", put, &s, TENREC_POOL, &err) ||
                        tenrec_worker_register_function(w, "get", get, &s, TENREC_POOL, &err) ||
                        tenrec_init_rpc(w, &err) || use(w, &err) ||
                        tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, &err);

    if (failed)
        tenrec_error_print(&err, "keyvalue");
    tenrec_worker_drop(w);
    for (size_t i = 0; i < s.n; i++)
        tenrec_value_drop(s.value[i]);
    return failed;
}
