/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - a configuration from a file, the environment and the program. */
#include "core/config/config.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/config/node.h"
#include "core/config/settings.h"
#include "core/config/state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_KEY_DEPTH 4 /* backends.NAME.options.KEY */
#define READ_MS 5000    /* for a pipe */

/* Moves the keys that `map` lacks from `defaults` to it. */
static tenrec_status add_missing(struct node *map, struct node *defaults, tenrec_error *err)
{
    for (size_t i = defaults->n; i > 0; i--) {
        struct node *node = defaults->item[i - 1];
        if (node_get(map, node->key))
            continue;
        node_take(defaults, node->key);
        if (node_add(map, node) != TENREC_OK)
            return memory_fail(err);
    }
    return TENREC_OK;
}

/* A file without `backends` gets the built-in ones; under `worker` and `observe` each missing
 * key gets its default. */
static tenrec_status add_defaults(struct node *root, tenrec_error *err)
{
    static const struct position by_default = { .kind = POSITION_DEFAULT };
    static const char *const by_key[] = { "worker", "observe" };
    struct node *defaults;
    tenrec_status st = tree_parse(builtin_yaml, builtin_yaml_len, &by_default, &defaults, err);

    if (st != TENREC_OK)
        return st;
    for (size_t i = 0; st == TENREC_OK && i < sizeof by_key / sizeof by_key[0]; i++) {
        struct node *map = node_get(root, by_key[i]);

        if (map && map->kind == NODE_MAP)
            st = add_missing(map, node_get(defaults, by_key[i]), err);
    }
    if (st == TENREC_OK)
        st = add_missing(root, defaults, err);
    node_drop(defaults);
    return st;
}

/* Puts `value` (taken) at `key` of `map`, in place of a former value. */
static tenrec_status config_put(struct node *map, const char *key, struct node *value,
                                tenrec_error *err)
{
    struct position where;

    if (!value)
        return memory_fail(err);
    where = value->where;
    node_drop(node_take(map, key));
    return node_add_key(map, key, &where, value) == TENREC_OK ? TENREC_OK : memory_fail(err);
}

/* Applies the variables that need no option table. */
static tenrec_status apply_variables(struct tenrec_config *config, tenrec_error *err)
{
    static const char *const names[][2] = {
        { "TENREC_BACKEND", "backend" },
        { "TENREC_INIT_METHOD", "init_method" },
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct variable *variable = environment_get(&config->env, names[i][0]);
        struct position where;
        tenrec_status st;
        if (!variable)
            continue;
        where = environment_where(variable);
        st = config_put(config->root, names[i][1], node_scalar(variable->value, NODE_RAW, &where),
                        err);
        if (st != TENREC_OK)
            return st;
    }
    return TENREC_OK;
}

/* Checks all that needs no plugin. */
static tenrec_status config_check(const struct tenrec_config *config, tenrec_error *err)
{
    struct config_settings *settings;
    struct config_security *security;
    tenrec_status st = schema_check_shape(config->root, err);

    if (st == TENREC_OK)
        st = schema_check_names(config->root, config->name, err);
    if (st == TENREC_OK)
        st = config_settings_make(config, &settings, err);
    if (st == TENREC_OK) {
        config_settings_drop(settings);
        st = config_security_make(config, &security, err);
    }
    if (st == TENREC_OK)
        config_security_drop(security);
    return st;
}

/* Parses the text into config->root; an empty text becomes an empty map. */
static tenrec_status read_text(struct tenrec_config *config, const char *text, size_t len,
                               tenrec_error *err)
{
    struct position where = { .kind = POSITION_FILE, .name = config->name, .line = 1, .column = 1 };
    tenrec_status st = tree_parse(text, len, &where, &config->root, err);

    if (st != TENREC_OK)
        return st;
    if (!config->root || node_is_null(config->root)) {
        node_drop(config->root);
        config->root = node_new(NODE_MAP, &where);
    }
    return config->root ? TENREC_OK : memory_fail(err);
}

/* Before the defaults are added: these have no position for an error to name. */
static tenrec_status check_written(struct tenrec_config *config, const struct config_mistakes *m,
                                   tenrec_error *err)
{
    tenrec_status st;

    do
        st = schema_check_shape(config->root, err);
    while (st != TENREC_OK && m && m->leave_out(m->arg, config, config->root, err));
    return st;
}

/* Adds the defaults and the variables, and checks the whole. */
static tenrec_status config_complete(struct tenrec_config *config, tenrec_error *err)
{
    tenrec_status st = add_defaults(config->root, err);

    if (st == TENREC_OK)
        st = apply_variables(config, err);
    return st == TENREC_OK ? config_check(config, err) : st;
}

/* The same on copies of what was written, until nothing in it is wrong. */
static tenrec_status config_complete_all(struct tenrec_config *config,
                                         const struct config_mistakes *m, tenrec_error *err)
{
    struct node *written = config->root;
    tenrec_status st;

    config->root = NULL;
    do {
        node_drop(config->root);
        config->root = node_copy(written);
        st = config->root ? config_complete(config, err) : memory_fail(err);
    } while (st != TENREC_OK && m->leave_out(m->arg, config, written, err));
    node_drop(written);
    return st;
}

/* `path` is NULL unless the text is from a file; `m` if the first mistake ends it. */
static tenrec_status config_make(const char *text, size_t len, const char *name, const char *path,
                                 const struct config_mistakes *m, struct tenrec_config **ret,
                                 tenrec_error *err)
{
    struct tenrec_config *config = memory_new(1, sizeof *config);
    tenrec_status st;

    if (!config)
        return memory_fail(err);
    config->name = memory_text(name);
    st = config->name ? environment_read(&config->env, err) : memory_fail(err);
    if (st == TENREC_OK)
        st = read_text(config, text, len, err);
    if (st == TENREC_OK)
        st = check_written(config, m, err);
    if (st == TENREC_OK && path)
        st = file_paths_resolve(config->root, path, err);
    if (st == TENREC_OK)
        st = m ? config_complete_all(config, m, err) : config_complete(config, err);
    if (st != TENREC_OK) {
        tenrec_config_drop(config);
        return st;
    }
    known_variables_warn(config);
    *ret = config;
    return TENREC_OK;
}

/* A pipe has no folder for relative plugin paths. */
static bool is_file(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* Reads up to one byte more than allowed, so that tree_parse refuses a longer file. */
static tenrec_status read_file(const char *path, char **ret, size_t *ret_len, bool *ret_is_file,
                               tenrec_error *err)
{
    size_t room = TREE_MAX_BYTES + 1, len = 0;
    char *text = memory_new(room, 1);
    /* The writer of a pipe may be slow, or never write. */
    const uint64_t deadline_ns = clock_deadline_ms(READ_MS);
    int fd = text ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

    if (!text)
        return memory_fail(err);
    while (fd >= 0 && len < room) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        /* Reading a pipe before its writer opens it would return the end of file. */
        ssize_t n = poll(&p, 1, clock_left_ms(deadline_ns));
        if (n == 0) {
            errno = ETIMEDOUT;
            goto err_read;
        }
        if (n > 0)
            n = read(fd, text + len, room - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            goto err_read;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    if (fd < 0)
        goto err_read;
    *ret_is_file = is_file(fd);
    close(fd);
    *ret = text;
    *ret_len = len;
    return TENREC_OK;

err_read:
    tenrec_fail_errno(err, TENREC_EOS, errno, "cannot read the configuration '%s'", path);
    if (fd >= 0)
        close(fd);
    free(text);
    return TENREC_EOS;
}

tenrec_status config_load_all(const char *path, const struct config_mistakes *m,
                              struct tenrec_config **ret, tenrec_error *err)
{
    const char *variable = secure_getenv("TENREC_CONFIG");
    bool named = !path && variable && *variable;
    tenrec_status st;
    bool file = false;
    size_t len = 0;
    char *text = NULL;

    *ret = NULL;
    if (!path && !named)
        return config_make("", 0, "default", NULL, m, ret, err);
    path = named ? variable : path;
    st = read_file(path, &text, &len, &file, err);
    if (st != TENREC_OK) {
        if (named)
            tenrec_error_prefix(err, "environment TENREC_CONFIG");
        return st;
    }
    st = config_make(text, len, path, file ? path : NULL, m, ret, err);
    free(text);
    return st;
}

tenrec_status tenrec_config_load(const char *path, struct tenrec_config **ret, tenrec_error *err)
{
    return config_load_all(path, NULL, ret, err);
}

tenrec_status config_parse_all(const char *text, const char *name, const struct config_mistakes *m,
                               struct tenrec_config **ret, tenrec_error *err)
{
    *ret = NULL;
    if (!text)
        return tenrec_fail(err, TENREC_EINVAL, "text is NULL, YAML was expected");
    return config_make(text, strlen(text), name ? name : "text", NULL, m, ret, err);
}

tenrec_status tenrec_config_parse(const char *text, const char *name, struct tenrec_config **ret,
                                  tenrec_error *err)
{
    return config_parse_all(text, name, NULL, ret, err);
}

/* Returns true if the value of the key is a whole map, which is parsed as YAML at once. */
static bool is_structure(char *const *part, size_t n)
{
    bool entries = strcmp(part[0], "backends") == 0 || strcmp(part[0], "stores") == 0 ||
                   strcmp(part[0], "observers") == 0;
    bool security = strcmp(part[0], "security") == 0;
    bool flat = strcmp(part[0], "worker") == 0 || strcmp(part[0], "observe") == 0;

    if (n == 1)
        return flat || security || entries;
    if (security)
        return n == 2 && strcmp(part[1], SECURITY_MTLS_KEY) == 0;
    return entries && (n == 2 || (n == 3 && strcmp(part[2], "options") == 0));
}

static tenrec_status split_key(char *key, char **part, size_t *ret_n, tenrec_error *err)
{
    size_t n = 0;
    char *whole = key, *word;

    while ((word = strsep(&key, "."))) {
        if (!*word)
            return tenrec_fail(err, TENREC_ECONFIG, "a part of the key is empty");
        if (n == MAX_KEY_DEPTH || (n == 2 && strcmp(whole, "worker") == 0))
            return tenrec_fail(err, TENREC_ECONFIG,
                               "the key has too many parts: set the whole value one level up");
        part[n++] = word;
    }
    *ret_n = n;
    return TENREC_OK;
}

static tenrec_status config_set(struct node *root, char *const *part, size_t n, const char *value,
                                tenrec_error *err)
{
    static const struct position code = { .kind = POSITION_CODE };
    struct node *map = root, *leaf = NULL;
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i + 1 < n; i++) {
        struct node *child = node_get(map, part[i]);
        if (!child) {
            child = node_new(NODE_MAP, &code);
            st = config_put(map, part[i], child, err);
            if (st != TENREC_OK)
                return st;
        }
        if (child->kind != NODE_MAP)
            return tenrec_fail(err, TENREC_ECONFIG, "'%s' holds no further keys", part[i]);
        map = child;
    }
    if (!is_structure(part, n))
        leaf = node_scalar(value, NODE_RAW, &code);
    else if ((st = tree_parse(value, strlen(value), &code, &leaf, err)) == TENREC_OK && !leaf)
        leaf = node_new(NODE_MAP, &code);
    return st == TENREC_OK ? config_put(map, part[n - 1], leaf, err) : st;
}

tenrec_status tenrec_config_set(struct tenrec_config *config, const char *key, const char *value,
                                tenrec_error *err)
{
    struct tenrec_config changed;
    char *part[MAX_KEY_DEPTH], *copy;
    size_t n = 0;
    tenrec_status st;

    if (!key || !value)
        return tenrec_fail(err, TENREC_EINVAL, "key or value is NULL, text was expected");
    changed = *config;
    changed.root = node_copy(config->root);
    copy = memory_text(key);
    st = changed.root && copy ? split_key(copy, part, &n, err) : memory_fail(err);
    if (st == TENREC_OK)
        st = config_set(changed.root, part, n, value, err);
    if (st == TENREC_OK)
        st = add_defaults(changed.root, err);
    if (st == TENREC_OK)
        st = config_check(&changed, err);
    free(copy);
    if (st != TENREC_OK) {
        node_drop(changed.root);
        tenrec_error_prefix(err, "set '%s'", key);
        return st;
    }
    node_drop(config->root);
    config->root = changed.root;
    return TENREC_OK;
}

void tenrec_config_drop(struct tenrec_config *config)
{
    if (!config)
        return;
    node_drop(config->root);
    environment_finish(&config->env);
    free(config->name);
    free(config);
}
