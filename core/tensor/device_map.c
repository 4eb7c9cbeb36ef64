/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"

const char *device_text(struct tenrec_device d, char buf[DEVICE_TEXT_MAX])
{
    if (d.kind == TENREC_CPU)
        snprintf(buf, DEVICE_TEXT_MAX, "cpu");
    else if (d.kind == TENREC_CUDA)
        snprintf(buf, DEVICE_TEXT_MAX, "cuda:%d", (int)d.index);
    else
        snprintf(buf, DEVICE_TEXT_MAX, "device %d:%d", (int)d.kind, (int)d.index);
    return buf;
}

bool device_listed(const struct tenrec_device *device, size_t n, struct tenrec_device d)
{
    for (size_t i = 0; i < n; i++)
        if (device_equal(device[i], d))
            return true;
    return false;
}

const char *device_list_text(const struct tenrec_device *device, size_t n, char *buf, size_t room)
{
    char one[DEVICE_TEXT_MAX];
    size_t len = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < n && len + DEVICE_TEXT_MAX + 2 < room; i++)
        len += (size_t)snprintf(buf + len, room - len, "%s%s", i ? ", " : "",
                                device_text(device[i], one));
    return buf;
}

/* ---- rows --------------------------------------------------------------------- */

void device_map_free(struct device_map *m)
{
    free(m->worker);
    free(m->pair);
    *m = (struct device_map){ 0 };
}

void device_row_free(struct device_row *r)
{
    for (size_t i = 0; i < r->n_maps; i++)
        device_map_free(&r->map[i]);
    free(r->map);
    free(r->device);
    *r = (struct device_row){ 0 };
}

bool device_row_is_empty(const struct device_row *r)
{
    return r->n_devices == 0 && r->n_maps == 0;
}

const struct device_map *device_row_map(const struct device_row *r, const char *worker)
{
    for (size_t i = 0; i < r->n_maps; i++)
        if (strcmp(r->map[i].worker, worker) == 0)
            return &r->map[i];
    return NULL;
}

bool device_map_find(const struct device_map *m, struct tenrec_device from,
                     struct tenrec_device *ret)
{
    for (size_t i = 0; m && i < m->n; i++) {
        if (!device_equal(m->pair[i].from, from))
            continue;
        *ret = m->pair[i].to;
        return true;
    }
    return false;
}

static tenrec_status no_memory(tenrec_error *err)
{
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for a device map");
}

/* Returns the map for `worker`, made when missing; NULL: no memory. */
static struct device_map *map_for(struct device_row *r, const char *worker)
{
    struct device_map *found = (struct device_map *)(uintptr_t)device_row_map(r, worker), *grown;
    char *name;

    if (found)
        return found;
    name = memory_text(worker);
    grown = name ? memory_resize(r->map, r->n_maps + 1, sizeof *grown) : NULL;
    if (!grown) {
        free(name);
        return NULL;
    }
    r->map = grown;
    grown[r->n_maps] = (struct device_map){ .worker = name };
    return &grown[r->n_maps++];
}

static tenrec_status add_pair(struct device_map *m, const struct tenrec_device_pair *pair,
                              tenrec_error *err)
{
    char from[DEVICE_TEXT_MAX], now[DEVICE_TEXT_MAX], then[DEVICE_TEXT_MAX];
    struct tenrec_device_pair *grown;
    struct tenrec_device to;

    if (device_map_find(m, pair->from, &to)) {
        if (device_equal(to, pair->to))
            return TENREC_OK;
        return tenrec_fail(err, TENREC_EINVAL,
                           "device map for '%s': %s maps to %s already, not also to %s (one "
                           "target for each device)",
                           m->worker, device_text(pair->from, from), device_text(to, now),
                           device_text(pair->to, then));
    }
    grown = memory_resize(m->pair, m->n + 1, sizeof *grown);
    if (!grown)
        return no_memory(err);
    m->pair = grown;
    grown[m->n++] = *pair;
    return TENREC_OK;
}

tenrec_status device_row_add(struct device_row *r, const char *worker,
                             const struct tenrec_device_pair *pair, size_t n, tenrec_error *err)
{
    struct device_map *m = map_for(r, worker);
    tenrec_status st = m ? TENREC_OK : no_memory(err);

    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        st = add_pair(m, &pair[i], err);
    return st;
}

tenrec_status device_row_set_devices(struct device_row *r, const struct tenrec_device *device,
                                     size_t n, tenrec_error *err)
{
    struct tenrec_device *copy = memory_new(n ? n : 1, sizeof *copy);

    if (!copy)
        return no_memory(err);
    if (n)
        memcpy(copy, device, n * sizeof *copy);
    free(r->device);
    r->device = copy;
    r->n_devices = n;
    return TENREC_OK;
}

/* ---- the table ------------------------------------------------------------------- */

/* The host always exists; with an unknown count every index does. */
static bool device_exists(struct tenrec_device d, const struct device_row *r)
{
    if (d.kind == TENREC_CPU)
        return d.index == 0;
    return d.kind == TENREC_CUDA && d.index >= 0 &&
           (r->count == DEVICE_COUNT_UNKNOWN || d.index < r->count);
}

/* "it has no devices", "it has cuda:0 to cuda:1". */
static const char *has_text(const struct device_row *r, char *buf, size_t room)
{
    if (r->count == DEVICE_COUNT_UNKNOWN)
        snprintf(buf, room, "indices begin at 0");
    else if (r->count == 0)
        snprintf(buf, room, "it has no devices");
    else if (r->count == 1)
        snprintf(buf, room, "it has cuda:0 only");
    else
        snprintf(buf, room, "it has cuda:0 to cuda:%lld", (long long)r->count - 1);
    return buf;
}

static tenrec_status check_devices(const struct device_row *r, tenrec_error *err)
{
    char one[DEVICE_TEXT_MAX], has[80];

    for (size_t i = 0; i < r->n_devices; i++)
        if (device_listed(r->device, i, r->device[i]))
            return tenrec_fail(err, TENREC_EGROUP,
                               "worker.devices of '%s' names %s twice: name each device once",
                               r->name, device_text(r->device[i], one));
    for (size_t i = 0; i < r->n_devices; i++)
        if (!device_exists(r->device[i], r))
            return tenrec_fail(err, TENREC_EGROUP,
                               "worker.devices of '%s' names %s, which does not exist there: %s",
                               r->name, device_text(r->device[i], one),
                               has_text(r, has, sizeof has));
    return TENREC_OK;
}

static const struct device_row *device_row_find(const struct device_row *row, size_t n,
                                                const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(row[i].name, name) == 0)
            return &row[i];
    return NULL;
}

static tenrec_status check_targets_named(const struct device_row *of, const struct device_row *row,
                                         size_t n, tenrec_error *err)
{
    struct suggestion near;

    for (size_t i = 0; i < of->n_maps; i++) {
        const char *name = of->map[i].worker;

        if (device_row_find(row, n, name))
            continue;
        suggest_init(&near, name);
        for (size_t k = 0; k < n; k++)
            suggest_try(&near, row[k].name);
        return tenrec_fail(err, TENREC_EGROUP,
                           "worker.device_maps of '%s' has a map for '%s', which is no worker of "
                           "the group%s",
                           of->name, name, suggest_hint(&near));
    }
    return TENREC_OK;
}

/* Makes an error about one map. */
static tenrec_status fail_map(const struct device_row *of, const struct device_map *m,
                              const char *problem, tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EGROUP, "worker.device_maps of '%s': in the map for '%s' %s",
                       of->name, m->worker, problem);
}

static tenrec_status check_distinct(const struct device_row *of, const struct device_map *m,
                                    tenrec_error *err)
{
    char a[DEVICE_TEXT_MAX], b[DEVICE_TEXT_MAX], to[DEVICE_TEXT_MAX], problem[200];

    for (size_t i = 0; i < m->n; i++) {
        for (size_t k = 0; k < i; k++) {
            if (!device_equal(m->pair[i].to, m->pair[k].to))
                continue;
            snprintf(problem, sizeof problem,
                     "%s and %s both go to %s: give each a target of its own, for the way back of "
                     "answers",
                     device_text(m->pair[k].from, a), device_text(m->pair[i].from, b),
                     device_text(m->pair[i].to, to));
            return fail_map(of, m, problem, err);
        }
    }
    return TENREC_OK;
}

/* Checks one end of a map against the worker with the devices of that end. */
static tenrec_status check_end(const struct device_row *of, const struct device_map *m,
                               const struct device_row *r, bool target, tenrec_error *err)
{
    char one[DEVICE_TEXT_MAX], text[96], problem[240];

    for (size_t i = 0; i < m->n; i++) {
        const struct tenrec_device d = target ? m->pair[i].to : m->pair[i].from;

        if (r->n_devices > 0 ? device_listed(r->device, r->n_devices, d) : device_exists(d, r))
            continue;
        if (r->n_devices > 0)
            snprintf(problem, sizeof problem,
                     "the %s %s is not in worker.devices of '%s', [%s]: add it there, or remove it "
                     "from the map",
                     target ? "target" : "device", device_text(d, one), r->name,
                     device_list_text(r->device, r->n_devices, text, sizeof text));
        else
            snprintf(problem, sizeof problem, "the %s %s does not exist on '%s': %s",
                     target ? "target" : "device", device_text(d, one), r->name,
                     has_text(r, text, sizeof text));
        return fail_map(of, m, problem, err);
    }
    return TENREC_OK;
}

static tenrec_status check_maps(const struct device_row *of, const struct device_row *row, size_t n,
                                tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < of->n_maps && st == TENREC_OK; i++) {
        const struct device_map *m = &of->map[i];
        const struct device_row *callee = device_row_find(row, n, m->worker);

        st = check_distinct(of, m, err);
        if (st == TENREC_OK)
            st = check_end(of, m, of, false, err);
        if (st == TENREC_OK && callee)
            st = check_end(of, m, callee, true, err);
    }
    return st;
}

tenrec_status device_table_check(const struct device_row *row, size_t n, bool all,
                                 tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        st = check_devices(&row[i], err);
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        if (all)
            st = check_targets_named(&row[i], row, n, err);
        if (st == TENREC_OK)
            st = check_maps(&row[i], row, n, err);
    }
    return st;
}

bool device_table_wants_count(const struct device_row *row, size_t n, size_t i)
{
    const struct device_row *r = &row[i];

    if (r->count != DEVICE_COUNT_UNKNOWN)
        return false;
    for (size_t k = 0; k < n; k++)
        if (device_row_map(&row[k], row[i].name))
            return true;
    return !device_row_is_empty(r);
}

tenrec_status device_map_copy(const struct device_map *m, bool reversed, struct device_map *ret,
                              tenrec_error *err)
{
    *ret = (struct device_map){ 0 };
    if (!m || m->n == 0)
        return TENREC_OK;
    ret->pair = memory_new(m->n, sizeof *ret->pair);
    if (!ret->pair)
        return no_memory(err);
    for (; ret->n < m->n; ret->n++) {
        const struct tenrec_device_pair *p = &m->pair[ret->n];
        ret->pair[ret->n] = reversed ? (struct tenrec_device_pair){ p->to, p->from } : *p;
    }
    return TENREC_OK;
}

/* ---- the list ---------------------------------------------------------------------- */

static int by_index(const void *a, const void *b)
{
    const struct tenrec_device *x = a, *y = b;

    return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind)
                              : (x->index > y->index) - (x->index < y->index);
}

static void list_add(struct tenrec_device *list, size_t *n, struct tenrec_device d)
{
    if (d.kind != TENREC_CPU && !device_listed(list, *n, d))
        list[(*n)++] = d;
}

tenrec_status device_table_list(const struct device_row *row, size_t n, size_t i,
                                struct tenrec_device **ret, size_t *ret_n, tenrec_error *err)
{
    const struct device_row *mine = &row[i];
    struct tenrec_device *list;
    size_t room = mine->n_devices + 1, found = 0;

    for (size_t k = 0; k < mine->n_maps; k++)
        room += mine->map[k].n;
    for (size_t k = 0; k < n; k++) {
        const struct device_map *m = device_row_map(&row[k], row[i].name);
        room += m ? m->n : 0;
    }
    list = memory_new(room, sizeof *list);
    if (!list)
        return no_memory(err);
    for (size_t k = 0; k < mine->n_devices; k++)
        list_add(list, &found, mine->device[k]);
    for (size_t k = 0; mine->n_devices == 0 && k < mine->n_maps; k++)
        for (size_t p = 0; p < mine->map[k].n; p++)
            list_add(list, &found, mine->map[k].pair[p].from);
    for (size_t k = 0; mine->n_devices == 0 && k < n; k++) {
        const struct device_map *m = device_row_map(&row[k], row[i].name);
        for (size_t p = 0; m && p < m->n; p++)
            list_add(list, &found, m->pair[p].to);
    }
    qsort(list, found, sizeof *list, by_index);
    *ret = list;
    *ret_n = found;
    return TENREC_OK;
}
