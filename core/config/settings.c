/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - the keys of `worker:`, read into a struct. */
#include "core/config/settings.h"

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/config/config.h"
#include "core/config/node.h"
#include "core/config/state.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES 128

struct settings_made {
    struct arena arena;
    struct config_settings settings;
};

#define AT(field) offsetof(struct config_settings, field)
/* clang-format off */
static const struct tenrec_option table[] = {
    { "name", TENREC_OPT_STRING, 0, AT(name), 0, "worker{rank}", 0, 0, NULL,
      "Name of this worker; {rank} becomes its rank." },
    { "num_worker_threads", TENREC_OPT_INT, 0, AT(num_worker_threads), 0, "8", 1, 4096, NULL,
      "Threads that run handlers. If all are blocked outside of Tenrec, up to eight times as many, unless this is 1." },
    { "rpc_timeout", TENREC_OPT_DURATION, 0, AT(rpc_timeout_ms), 0, "60s", 1, 0, NULL,
      "Timeout of a call that sets none of its own." },
    { "init_timeout", TENREC_OPT_DURATION, 0, AT(init_timeout_ms), 0, "60s", 1, 0, NULL,
      "Timeout of joining the group." },
    { "devices", TENREC_OPT_LIST, TENREC_OPT_STRING, AT(device_names), 0, "[]", 0, 0, NULL,
      "Devices whose tensors this worker sends and receives." },
    { "rank", TENREC_OPT_INT, 0, AT(rank), 0, NULL, 0, INT16_MAX, NULL,
      "Rank in the group, or the preferred id in a dynamic group; by default from the launcher." },
    { "world_size", TENREC_OPT_INT, 0, AT(world_size), 0, NULL, 1, INT16_MAX + 1, NULL,
      "Workers in the group; by default from the launcher. Without a size the group is dynamic." },
    { "group", TENREC_OPT_STRING, 0, AT(group), 0, "default", 0, 0, NULL,
      "Name of the group; groups that share a store need different ones." },
    { "group_protocol", TENREC_OPT_STRING, 0, AT(group_protocol), 0, "tenrec", 0, 0, "tenrec|torch",
      "Protocol of the group's members: Tenrec's, or that of torch's own workers (tenrec/torch.h)." },
    { "trace", TENREC_OPT_STRING, 0, AT(trace), 0, "", 0, 0, NULL,
      "File for a Chrome trace of all calls, written at shutdown; {rank} becomes the rank." },
    { "rref_retry_gap", TENREC_OPT_DURATION, 0, AT(rref_retry_gap_ms), 0, "1s", 1, 60000, NULL,
      "Delay before a control message of remote references is retried." },
    { "heartbeat", TENREC_OPT_DURATION, 0, AT(heartbeat_ms), 0, "1s", 10, 3600000, NULL,
      "Interval at which members of a dynamic group poll each other." },
    { "heartbeat_misses", TENREC_OPT_INT, 0, AT(heartbeat_misses), 0, "5", 1, 1000, NULL,
      "Polls without an answer after which the group removes a member as dead." },
    { "group_lease", TENREC_OPT_DURATION, 0, AT(group_lease_ms), 0, "5s", 50, 600000, NULL,
      "Lease of a dynamic group's lock; the lock of a dead holder expires after this time." },
    { "max_queued_calls", TENREC_OPT_INT, 0, AT(max_queued_calls), 0, "4096", 1, 1 << 24, NULL,
      "Queued calls at which the worker stops reading; also the limit of threads that are added while functions "
      "wait for other calls." },
    { "max_served_bytes", TENREC_OPT_SIZE, 0, AT(max_served_bytes), 0, "512MiB", 1, INT64_MAX / 2,
      NULL, "Bytes of running and queued calls at which the worker stops reading while calls wait for a thread." },
    { "receive_pool", TENREC_OPT_SIZE, 0, AT(receive_pool_bytes), 0, "256MiB", 0, INT64_MAX / 2,
      NULL, "Memory of large tensors that is kept for reuse; 0 keeps none." },
    { "stuck_after", TENREC_OPT_DURATION, 0, AT(stuck_after_ms), 0, "30s", 1, 0, NULL,
      "Time after which the log names a handler that still runs; `none` for never." },
};
/* clang-format on */

const struct tenrec_plugin settings_table = {
    TENREC_PLUGIN_HEADER,
    .name = "worker",
    TENREC_PLUGIN_OPTIONS(table, struct config_settings),
};

struct option_source settings_source(const struct tenrec_config *config)
{
    return (struct option_source){
        .map = node_get(config->root, "worker"),
        .env = &config->env,
        .top = "worker",
    };
}

struct position settings_where(const struct tenrec_config *config, const char *key)
{
    const struct option_source src = settings_source(config);

    return options_key_where(&src, key);
}

/* Checks that `text` is a name, with a number of up to five digits for each `hole`. */
static tenrec_status check_name(const struct tenrec_config *config, const char *key,
                                const char *text, const char *hole, tenrec_error *err)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:-";
    struct position where;
    size_t len = 0;

    for (const char *p = text; *p;) {
        size_t n = strspn(p, letters);
        len += n;
        p += n;
        if (*p == '\0')
            break;
        if (!hole || strncmp(p, hole, strlen(hole)) != 0) {
            where = settings_where(config, key);
            return position_fail(err, TENREC_ECONFIG, &where,
                                 "worker.%s: '%s' may hold letters, digits, '_', ':', '-'%s only",
                                 key, text, hole ? " and {rank}" : "");
        }
        p += strlen(hole);
        len += 5;
    }
    if (len >= 1 && len <= TENREC_NAME_MAX)
        return TENREC_OK;
    where = settings_where(config, key);
    return position_fail(err, TENREC_ECONFIG, &where,
                         "worker.%s: expected 1 to %d characters, found '%s'", key, TENREC_NAME_MAX,
                         text);
}

static bool read_device(const char *text, struct tenrec_device *ret)
{
    const char *digits;
    unsigned long index;

    if (strcmp(text, "cpu") == 0 || strcmp(text, "cpu:0") == 0) {
        *ret = (struct tenrec_device){ .kind = TENREC_CPU };
        return true;
    }
    if (strncmp(text, "cuda:", 5) != 0)
        return false;
    digits = text + 5;
    if (strspn(digits, "0123456789") != strlen(digits) || !*digits || strlen(digits) > 3)
        return false;
    index = strtoul(digits, NULL, 10);
    *ret = (struct tenrec_device){ .kind = TENREC_CUDA, .index = (int32_t)index };
    return index < MAX_DEVICES;
}

static tenrec_status fail_device(const struct position *where, const char *key, const char *text,
                                 tenrec_error *err)
{
    return position_fail(err, TENREC_ECONFIG, where,
                         "worker.%s: expected a device such as cpu or cuda:0, found '%s'", key,
                         text);
}

static tenrec_status fill_devices(const struct tenrec_config *config, struct settings_made *made,
                                  tenrec_error *err)
{
    const struct tenrec_option_list *names = &made->settings.device_names;
    struct tenrec_device *device = arena_new(&made->arena, names->n ? names->n : 1, sizeof *device);

    if (!device)
        return memory_fail(err);
    for (size_t i = 0; i < names->n; i++) {
        if (!read_device(names->v[i].s, &device[i])) {
            struct position where = settings_where(config, "devices");
            return fail_device(&where, "devices", names->v[i].s, err);
        }
    }
    made->settings.device = device;
    made->settings.n_devices = names->n;
    return TENREC_OK;
}

/* Reads one `worker1: {cuda:0: cuda:1}`. */
static tenrec_status fill_map(const struct node *node, struct arena *arena,
                              struct config_device_map *ret, tenrec_error *err)
{
    struct tenrec_device_pair *pair = arena_new(arena, node->n ? node->n : 1, sizeof *pair);
    char found[120];

    ret->worker = arena_text(arena, node->key);
    if (!pair || !ret->worker)
        return memory_fail(err);
    if (node->kind != NODE_MAP)
        return position_fail(
            err, TENREC_ECONFIG, &node->where,
            "worker.device_maps: expected a map such as {cuda:0: cuda:1} for '%s', "
            "found %s",
            node->key, node_describe(node, found, sizeof found));
    for (size_t i = 0; i < node->n; i++) {
        const struct node *to = node->item[i];
        if (!read_device(to->key, &pair[i].from))
            return fail_device(&to->key_where, SETTINGS_DEVICE_MAPS, to->key, err);
        if (to->kind != NODE_SCALAR || !read_device(to->text, &pair[i].to))
            return fail_device(&to->where, SETTINGS_DEVICE_MAPS,
                               to->kind == NODE_SCALAR ? to->text : "{...}", err);
    }
    ret->pair = pair;
    ret->n = node->n;
    return TENREC_OK;
}

/* Returns the effective map of maps; the caller drops *ret_own. */
static tenrec_status find_maps(const struct tenrec_config *config, const struct node **ret,
                               struct node **ret_own, tenrec_error *err)
{
    const struct node *written = node_get(node_get(config->root, "worker"), SETTINGS_DEVICE_MAPS);
    struct position where = settings_where(config, SETTINGS_DEVICE_MAPS);
    const char *text = written && written->kind == NODE_SCALAR && written->style == NODE_RAW
                           ? written->text
                           : NULL;

    *ret = written;
    *ret_own = NULL;
    if (where.kind == POSITION_ENVIRONMENT)
        text = environment_get(&config->env, where.name)->value;
    if (text) {
        tenrec_status st = tree_parse(text, strlen(text), &where, ret_own, err);
        if (st != TENREC_OK)
            return st;
        *ret = *ret_own;
    }
    if (!*ret || (*ret)->kind == NODE_MAP)
        return TENREC_OK;
    node_drop(*ret_own);
    *ret_own = NULL;
    return position_fail(err, TENREC_ECONFIG, &where,
                         "worker.device_maps: expected a map such as {worker1: {cuda:0: cuda:1}}");
}

static tenrec_status fill_maps(const struct tenrec_config *config, struct settings_made *made,
                               tenrec_error *err)
{
    const struct node *maps;
    struct node *own;
    struct config_device_map *map;
    tenrec_status st = find_maps(config, &maps, &own, err);
    size_t n = st == TENREC_OK && maps ? maps->n : 0;

    if (st != TENREC_OK || n == 0) {
        node_drop(own);
        return st;
    }
    map = arena_new(&made->arena, n, sizeof *map);
    if (!map)
        st = memory_fail(err);
    for (size_t i = 0; st == TENREC_OK && i < n; i++)
        st = fill_map(maps->item[i], &made->arena, &map[i], err);
    node_drop(own);
    made->settings.device_map = map;
    made->settings.n_device_maps = n;
    return st;
}

static tenrec_status fill_init_method(const struct tenrec_config *config,
                                      struct settings_made *made, tenrec_error *err)
{
    const struct node *node = node_get(config->root, "init_method");
    char where[POSITION_TEXT_MAX];

    if (!strstr(node->text, "://")) {
        char *masked = secret_mask(node->text);
        position_fail(err, TENREC_ECONFIG, &node->where,
                      "init_method: expected env://, tcp://HOST:PORT, file://PATH or PLUGIN://..., "
                      "found '%s'",
                      masked ? masked : "");
        free(masked);
        return TENREC_ECONFIG;
    }
    made->settings.init_method = arena_text(&made->arena, node->text);
    position_text(&node->where, where);
    if (node->where.kind == POSITION_DEFAULT)
        snprintf(where, sizeof where, "built-in configuration");
    made->settings.init_method_where = arena_text(&made->arena, where);
    return made->settings.init_method && made->settings.init_method_where ? TENREC_OK
                                                                          : memory_fail(err);
}

static tenrec_status settings_check(const struct tenrec_config *config,
                                    const struct config_settings *s, tenrec_error *err)
{
    tenrec_status st = check_name(config, "name", s->name, "{rank}", err);

    if (st == TENREC_OK)
        st = check_name(config, "group", s->group, NULL, err);
    if (st == TENREC_OK && s->rank >= 0 && s->world_size >= 0 && s->rank >= s->world_size) {
        struct position where = settings_where(config, "rank");
        st = position_fail(err, TENREC_ECONFIG, &where,
                           "worker.rank: %d does not exist in a group of %d (ranks begin at 0)",
                           (int)s->rank, (int)s->world_size);
    }
    return st;
}

tenrec_status config_settings_make(const struct tenrec_config *config, struct config_settings **ret,
                                   tenrec_error *err)
{
    struct option_source src = settings_source(config);
    struct settings_made *made = memory_new(1, sizeof *made);
    struct config_settings *s;
    tenrec_status st;

    if (!made)
        return memory_fail(err);
    s = &made->settings;
    s->rank = s->world_size = -1;
    st = options_check_keys(&settings_table, &src, SETTINGS_DEVICE_MAPS, err);
    if (st == TENREC_OK)
        st = options_fill(&settings_table, &src, &made->arena, s, err);
    if (st == TENREC_OK)
        st = settings_check(config, s, err);
    if (st == TENREC_OK)
        st = fill_devices(config, made, err);
    if (st == TENREC_OK)
        st = fill_maps(config, made, err);
    if (st == TENREC_OK)
        st = fill_init_method(config, made, err);
    if (st != TENREC_OK) {
        config_settings_drop(s);
        return st;
    }
    *ret = s;
    return TENREC_OK;
}

void config_settings_drop(struct config_settings *settings)
{
    struct settings_made *made;

    if (!settings)
        return;
    made = (struct settings_made *)(void *)((char *)settings -
                                            offsetof(struct settings_made, settings));
    arena_finish(&made->arena);
    free(made);
}
