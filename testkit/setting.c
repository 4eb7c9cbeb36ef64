/* SPDX-License-Identifier: Apache-2.0 */
#include "testkit/setting.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORLD_DEFAULT = 4, WORLD_MAX = 256, TIMEOUT_DEFAULT_MS = 60000, TEXT_MAX = 1024 };

/* ---- the options ------------------------------------------------------------ */

static tenrec_status setting_check(const struct tenrec_test_options *o, tenrec_error *err)
{
    if (o->mode > TENREC_TEST_PROCESSES)
        return tenrec_fail(err, TENREC_EINVAL,
                           "mode %u: expected TENREC_TEST_THREADS or TENREC_TEST_PROCESSES",
                           o->mode);
    if (o->world_size < 0 || o->world_size > WORLD_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "world_size %d: expected 1 to %d, or 0 for %d",
                           o->world_size, WORLD_MAX, WORLD_DEFAULT);
    if (o->num_worker_threads < 0 || o->num_fail_sends < 0 || o->timeout_ms < 0)
        return tenrec_fail(
            err, TENREC_EINVAL,
            "num_worker_threads, num_fail_sends and timeout_ms must not be negative");
    if (o->config && o->config_text)
        return tenrec_fail(err, TENREC_EINVAL,
                           "config and config_text are both set: expected only one");
    if (o->flags & TENREC_TEST_TCP_STORE && o->mode != TENREC_TEST_PROCESSES)
        return tenrec_fail(err, TENREC_EINVAL, "TENREC_TEST_TCP_STORE is for processes only");
    return TENREC_OK;
}

static tenrec_status make_folder(struct setting *s, tenrec_error *err)
{
    const char *base = secure_getenv("TMPDIR");

    if (!base || !*base || strlen(base) > SETTING_PATH_MAX / 2)
        base = "/tmp";
    snprintf(s->dir, sizeof s->dir, "%s/tenrec-test-XXXXXX", base);
    if (!mkdtemp(s->dir)) {
        int e = errno;
        s->dir[0] = '\0';
        return tenrec_fail_errno(err, TENREC_EOS, e, "a folder in \"%s\"", base);
    }
    snprintf(s->store, sizeof s->store, "file://%s/store", s->dir);
    return TENREC_OK;
}

tenrec_status setting_init(struct setting *s, const struct tenrec_test_options *options,
                           tenrec_error *err)
{
    static atomic_uint groups;
    struct tenrec_test_options *o = &s->o;
    tenrec_status st;

    memset(s, 0, sizeof *s);
    if (!options || options->size < sizeof *options)
        return tenrec_fail(err, TENREC_EINVAL, "options: size is not set (set it to sizeof)");
    *o = *options;
    if ((st = setting_check(o, err)) != TENREC_OK)
        return st;
    if (o->world_size == 0)
        o->world_size = WORLD_DEFAULT;
    if (o->timeout_ms == 0)
        o->timeout_ms = TIMEOUT_DEFAULT_MS;
    snprintf(s->group, sizeof s->group, "test-%ld-%u", (long)getpid(),
             atomic_fetch_add(&groups, 1));
    if (o->mode == TENREC_TEST_PROCESSES)
        return make_folder(s, err);
    snprintf(s->store, sizeof s->store, "memory://%s", s->group);
    return TENREC_OK;
}

void setting_finish(struct setting *s)
{
    DIR *dir = *s->dir ? opendir(s->dir) : NULL;
    struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir)))
        unlinkat(dirfd(dir), entry->d_name, 0); /* "." and ".." refuse */
    closedir(dir);
    rmdir(s->dir);
    s->dir[0] = '\0';
}

/* ---- the configuration --------------------------------------------------------- */

struct making {
    const struct setting *s;
    int32_t rank;
    struct tenrec_config *config;
};

/* Replaces the words in braces. */
static tenrec_status setting_expand(const struct making *m, const char *text, char ret[TEXT_MAX],
                                    tenrec_error *err)
{
    char rank[16], world[16];
    const struct {
        const char *word, *value;
    } words[] = { { "{rank}", rank }, { "{world_size}", world }, { "{group}", m->s->group } };
    size_t n = 0, i;

    snprintf(rank, sizeof rank, "%d", m->rank);
    snprintf(world, sizeof world, "%d", m->s->o.world_size);
    while (*text && n + 1 < TEXT_MAX) {
        for (i = 0; i < 3; i++)
            if (strncmp(text, words[i].word, strlen(words[i].word)) == 0)
                break;
        if (i == 3) {
            ret[n++] = *text++;
        } else {
            n += (size_t)snprintf(ret + n, TEXT_MAX - n, "%s", words[i].value);
            text += strlen(words[i].word);
        }
    }
    if (*text || n >= TEXT_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "setting \"%.40s...\" is longer than %d", text,
                           TEXT_MAX - 1);
    ret[n] = '\0';
    return TENREC_OK;
}

static tenrec_status set_list(const struct making *m, const char *prefix, const char *const *list,
                              tenrec_error *err)
{
    char text[TEXT_MAX], key[TEXT_MAX];
    tenrec_status st = TENREC_OK;

    for (; list && *list && st == TENREC_OK; list++) {
        const char *equals;
        if ((st = setting_expand(m, *list, text, err)) != TENREC_OK)
            return st;
        if (!(equals = strchr(text, '=')))
            return tenrec_fail(err, TENREC_EINVAL, "setting \"%s\": expected key=value", text);
        snprintf(key, sizeof key, "%s%.*s", prefix, (int)(equals - text), text);
        st = tenrec_config_set(m->config, key, equals + 1, err);
    }
    return st;
}

/* Writes "[A, B]", or "{A: 1s, B: 2s}" from "A=1s" and "B=2s". */
static tenrec_status setting_flow(const char *const *list, bool map, char ret[TEXT_MAX],
                                  tenrec_error *err)
{
    size_t n = 1;

    ret[0] = map ? '{' : '[';
    for (const char *const *item = list; *item; item++) {
        const char *equals = strchr(*item, '=');
        if (map && !equals)
            return tenrec_fail(err, TENREC_EINVAL, "messages_to_delay \"%s\": expected TYPE=TIME",
                               *item);
        if (map)
            n += (size_t)snprintf(ret + n, TEXT_MAX - n, "%s%.*s: %s", item == list ? "" : ", ",
                                  (int)(equals - *item), *item, equals + 1);
        else
            n += (size_t)snprintf(ret + n, TEXT_MAX - n, "%s%s", item == list ? "" : ", ", *item);
        if (n + 2 > TEXT_MAX)
            return tenrec_fail(err, TENREC_EINVAL, "messages_to_%s: the list is too long",
                               map ? "delay" : "fail");
    }
    ret[n] = map ? '}' : ']';
    ret[n + 1] = '\0';
    return TENREC_OK;
}

static tenrec_status set_option(const struct making *m, const char *key, const char *value,
                                tenrec_error *err)
{
    char name[TEXT_MAX];

    if (!m->s->o.backend)
        return tenrec_fail(err, TENREC_EINVAL, "%s is set without backend: set both", key);
    snprintf(name, sizeof name, "backends.%s.options.%s", m->s->o.backend, key);
    return tenrec_config_set(m->config, name, value, err);
}

static tenrec_status set_faults(const struct making *m, tenrec_error *err)
{
    const struct tenrec_test_options *o = &m->s->o;
    tenrec_status st = TENREC_OK;
    char text[TEXT_MAX];

    if (o->messages_to_fail &&
        (st = setting_flow(o->messages_to_fail, false, text, err)) == TENREC_OK)
        st = set_option(m, "messages_to_fail", text, err);
    if (st == TENREC_OK && o->messages_to_delay &&
        (st = setting_flow(o->messages_to_delay, true, text, err)) == TENREC_OK)
        st = set_option(m, "messages_to_delay", text, err);
    if (st == TENREC_OK && o->num_fail_sends > 0) {
        snprintf(text, sizeof text, "%d", o->num_fail_sends);
        st = set_option(m, "num_fail_sends", text, err);
    }
    return st;
}

static tenrec_status set_all(const struct making *m, tenrec_error *err)
{
    const struct tenrec_test_options *o = &m->s->o;
    char text[TEXT_MAX];
    tenrec_status st = set_list(m, "", o->settings, err);

    if (st == TENREC_OK && o->backend)
        st = tenrec_config_set(m->config, "backend", o->backend, err);
    if (st == TENREC_OK && o->num_worker_threads > 0) {
        snprintf(text, sizeof text, "%d", o->num_worker_threads);
        st = tenrec_config_set(m->config, "worker.num_worker_threads", text, err);
    }
    if (st == TENREC_OK && o->backend_options && !o->backend)
        st = tenrec_fail(err, TENREC_EINVAL, "backend_options is set without backend: set both");
    if (st == TENREC_OK && o->backend_options) {
        snprintf(text, sizeof text, "backends.%.100s.options.", o->backend);
        st = set_list(m, text, o->backend_options, err);
    }
    if (st == TENREC_OK)
        st = set_faults(m, err);
    if (st != TENREC_OK)
        return st;
    snprintf(text, sizeof text, "%s?rank=%d&world_size=%d", m->s->store, m->rank, o->world_size);
    return tenrec_config_set(m->config, "init_method",
                             o->flags & TENREC_TEST_TCP_STORE ? "env://" : text, err);
}

tenrec_status setting_config(const struct setting *s, int32_t rank, struct tenrec_config **ret,
                             tenrec_error *err)
{
    struct making m = { s, rank, NULL };
    tenrec_status st = s->o.config_text
                           ? tenrec_config_parse(s->o.config_text, NULL, &m.config, err)
                           : tenrec_config_load(s->o.config, &m.config, err);

    if (st == TENREC_OK && (st = set_all(&m, err)) != TENREC_OK) {
        tenrec_config_drop(m.config);
        return st;
    }
    *ret = m.config;
    return st;
}
