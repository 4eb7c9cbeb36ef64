/* SPDX-License-Identifier: Apache-2.0 */
#include "weights_support.h"
#include "../testing.h"

#include <stdio.h>
#include <tenrec/observe.h>

struct tenrec_tensor *matrix_new(int64_t rows, int64_t columns)
{
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    assert_status(tenrec_tensor_new(TENREC_INT32, 2, (int64_t[]){ rows, columns }, &t, &err), &err);
    memset(tenrec_tensor_data(t), 0, (size_t)tenrec_tensor_bytes(t));
    return t;
}

static int32_t element(const int64_t *shape, int64_t row, int64_t column, int64_t version)
{
    return (int32_t)((row * shape[1] + column) * 31 + version * 1000003);
}

void matrix_fill(struct tenrec_tensor *t, const int64_t *shape, const int64_t *at, int64_t version)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(t);
    int32_t *x = tenrec_tensor_data(t);

    for (int64_t i = 0; i < d->shape[0]; i++)
        for (int64_t k = 0; k < d->shape[1]; k++)
            *x++ = element(shape, at[0] + i, at[1] + k, version);
}

bool matrix_is(const struct tenrec_tensor *t, const int64_t *shape, const int64_t *at,
               int64_t version)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(t);
    const int32_t *x = tenrec_tensor_data(t);

    for (int64_t i = 0; i < d->shape[0]; i++)
        for (int64_t k = 0; k < d->shape[1]; k++)
            if (*x++ != element(shape, at[0] + i, at[1] + k, version))
                return false;
    return true;
}

struct tenrec_weights_box part(const char *name, struct tenrec_tensor *t, const int64_t *shape,
                               const int64_t *at)
{
    return (struct tenrec_weights_box){ .size = sizeof(struct tenrec_weights_box),
                                        .name = name,
                                        .tensor = t,
                                        .shape = shape,
                                        .at = at };
}

struct tenrec_weights_box whole(const char *name, struct tenrec_tensor *t)
{
    return part(name, t, NULL, NULL);
}

struct tenrec_weights *open_set(struct tenrec_worker *w)
{
    struct tenrec_weights *s = NULL;
    tenrec_error err;

    assert_status(tenrec_weights_open(w, SET, "worker0", &s, &err), &err);
    return s;
}

tenrec_status publish(struct tenrec_weights *s, int64_t version, struct tenrec_tensor *t,
                      tenrec_error *err)
{
    const struct tenrec_weights_box b = whole("m", t);

    matrix_fill(t, tenrec_tensor_desc(t)->shape, (int64_t[]){ 0, 0 }, version);
    return tenrec_weights_publish(s, version, &b, 1, NULL, err);
}

tenrec_status pull(struct tenrec_weights *s, int64_t version, struct tenrec_tensor *t,
                   int64_t *ret_version, tenrec_error *err)
{
    const struct tenrec_weights_box b = whole("m", t);

    return tenrec_weights_pull(s, version, &b, 1, NULL, ret_version, err);
}

static void *pull_run(void *arg)
{
    struct pulling *p = arg;
    const struct tenrec_weights_box b = whole("m", p->t);
    const struct tenrec_weights_options o = { .size = sizeof o,
                                              .timeout_ms = p->timeout_ms,
                                              .after = p->after };

    p->st = tenrec_weights_pull(p->s, p->version, &b, 1, &o, &p->got, &p->err);
    return NULL;
}

void pull_begin(struct pulling *p)
{
    if (!p->timeout_ms)
        p->timeout_ms = CLUSTER_LONG_MS;
    assert_int_equal(pthread_create(&p->thread, NULL, pull_run, p), 0);
}

void pull_end(struct pulling *p)
{
    assert_int_equal(pthread_join(p->thread, NULL), 0);
}

/* The holder with that name, and version (0: any). Drop *ret_view. */
static const struct tenrec_value *holder_of(struct tenrec_weights *s, const char *worker,
                                            int64_t version, struct tenrec_value **ret_view)
{
    const struct tenrec_value *list;
    tenrec_error err;

    assert_status(tenrec_weights_wait(s, TENREC_WEIGHTS_LATEST, 0, CLUSTER_LONG_MS, ret_view, &err),
                  &err);
    list = tenrec_value_find(*ret_view, "holders");
    for (size_t i = 0; i < list->n; i++) {
        const struct tenrec_value *h = &list->u.array[i];
        if (strcmp(tenrec_value_find(h, "worker")->u.text, worker) == 0 &&
            (version == 0 || tenrec_value_find(h, "version")->u.integer == version))
            return h;
    }
    return NULL;
}

const char *state_of(struct tenrec_weights *s, const char *worker, int64_t version, char ret[32])
{
    struct tenrec_value *view;
    const struct tenrec_value *h = holder_of(s, worker, version, &view);

    snprintf(ret, 32, "%s", h ? tenrec_value_find(h, "state")->u.text : "");
    tenrec_value_drop(view);
    return ret;
}

bool error_is(struct tenrec_weights *s, const char *worker, const char *text)
{
    struct tenrec_value *view;
    const struct tenrec_value *h = holder_of(s, worker, 0, &view);
    const bool is = h && strcmp(tenrec_value_find(h, "error")->u.text, text) == 0;

    tenrec_value_drop(view);
    return is;
}

int64_t info_of(struct tenrec_worker *w, const char *key)
{
    const struct tenrec_value *found;
    struct tenrec_value *v = NULL;
    tenrec_error err;
    int64_t n;

    assert_status(tenrec_worker_inspect(w, NULL, TENREC_INSPECT_DEBUG_INFO, NULL, &v, &err), &err);
    found = tenrec_value_find(v, key);
    n = found ? found->u.integer : -1;
    tenrec_value_drop(v);
    return n;
}
