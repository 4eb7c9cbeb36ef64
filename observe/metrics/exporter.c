/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics/exporter.h"

#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/private_file.h"
#include "core/base/this_host.h"
#include "core/plugin/plugin_validate.h"
#include "core/plugin/registry.h"
#include "observe/metrics/metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct exporter {
    struct exporter *next; /* guarded by the list's lock, like refs */
    unsigned refs;
    struct tenrec_exporter plugin;
    struct exporter_choice *choice; /* shares */
    char *address;                  /* owns */
    char part[80];                  /* "exporter/prometheus": the part of its log lines */
    pthread_mutex_t posting;        /* held during a post */
};

/* Opening and closing hold the lock, so that no second exporter binds the same address. */
static struct {
    pthread_mutex_t lock;
    struct exporter *first;
} open_exporters = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the plugin's host ------------------------------------------------------ */

static bool host_log_enabled(struct tenrec_exporter *self, enum tenrec_log_level level)
{
    (void)self;
    return log_enabled(level);
}

TENREC_PRINTF(3, 4)
static void host_log(struct tenrec_exporter *self, enum tenrec_log_level level, const char *fmt,
                     ...)
{
    const struct exporter *e =
        (const struct exporter *)(const void *)((const char *)self -
                                                offsetof(struct exporter, plugin));
    va_list ap;

    va_start(ap, fmt);
    log_vline(level, e->part, fmt, ap);
    va_end(ap);
}

static tenrec_status host_metrics_text(struct tenrec_exporter *self, char **ret, size_t *ret_len,
                                       tenrec_error *err)
{
    (void)self;
    return metrics_text(ret, ret_len, err);
}

static void host_text_free(struct tenrec_exporter *self, char *text)
{
    (void)self;
    free(text);
}

static tenrec_status host_private_folder(struct tenrec_exporter *self,
                                         char ret[TENREC_PRIVATE_FOLDER_MAX], tenrec_error *err)
{
    (void)self;
    return private_folder(ret, err);
}

static bool host_is_this_host(struct tenrec_exporter *self, const char *address)
{
    (void)self;
    return this_host_has(address);
}

static const struct tenrec_exporter_host host = {
    .size = sizeof host,
    .abi_major = TENREC_ABI_MAJOR,
    .abi_minor = TENREC_ABI_MINOR,
    .log_enabled = host_log_enabled,
    .log = host_log,
    .metrics_text = host_metrics_text,
    .text_free = host_text_free,
    .private_folder = host_private_folder,
    .is_this_host = host_is_this_host,
};

/* ---- opening and closing -------------------------------------------------- */

static void exporter_free(struct exporter *e)
{
    exporter_choice_drop(e->choice);
    pthread_mutex_destroy(&e->posting);
    free(e->address);
    free(e);
}

static tenrec_status exporter_init(struct exporter *e, tenrec_error *err)
{
    const struct tenrec_exporter_init in = { .size = sizeof in,
                                             .address = e->address,
                                             .options = e->choice->options };
    tenrec_status st;

    plugin_validate_begin(err);
    st = plugin_validate_end(backend_file(e->choice->backend)->init_exporter(&in, &e->plugin, err),
                             "init", err);
    if (st == TENREC_OK && (!e->plugin.ops || !TENREC_HAS(e->plugin.ops, close)))
        st = tenrec_fail(err, TENREC_EPLUGIN, "the plugin has no operation 'close'");
    return st;
}

static tenrec_status exporter_new(struct exporter_choice *choice, const char *address,
                                  struct exporter **ret, tenrec_error *err)
{
    struct exporter *e = memory_new(1, sizeof *e);
    tenrec_status st;

    if (!e)
        return memory_fail(err);
    e->refs = 1;
    e->plugin.host = &host;
    e->choice = exporter_choice_share(choice);
    e->address = memory_text(address);
    pthread_mutex_init(&e->posting, NULL);
    snprintf(e->part, sizeof e->part, "exporter/%s", choice->name);
    st = e->address ? exporter_init(e, err) : memory_fail(err);
    if (st == TENREC_OK) {
        *ret = e;
    } else {
        tenrec_error_prefix(err, "exporter '%s'", choice->name);
        exporter_free(e);
    }
    return st;
}

tenrec_status exporter_open(struct exporter_choice *choice, const char *address,
                            struct exporter **ret, tenrec_error *err)
{
    struct exporter *e;
    tenrec_status st = TENREC_OK;

    pthread_mutex_lock(&open_exporters.lock);
    for (e = open_exporters.first; e; e = e->next)
        if (strcmp(e->choice->name, choice->name) == 0 && strcmp(e->address, address) == 0)
            break;
    if (e) {
        e->refs++;
    } else if ((st = exporter_new(choice, address, &e, err)) == TENREC_OK) {
        e->next = open_exporters.first;
        open_exporters.first = e;
    }
    pthread_mutex_unlock(&open_exporters.lock);
    if (st == TENREC_OK)
        *ret = e;
    return st;
}

void exporter_close(struct exporter *e)
{
    struct exporter **at = &open_exporters.first;

    if (!e)
        return;
    pthread_mutex_lock(&open_exporters.lock);
    if (--e->refs == 0) {
        while (*at != e)
            at = &(*at)->next;
        *at = e->next;
        e->plugin.ops->close(&e->plugin);
        exporter_free(e);
    }
    pthread_mutex_unlock(&open_exporters.lock);
}

tenrec_status exporter_post(struct exporter *e, const void *body, size_t len, uint32_t timeout_ms,
                            tenrec_error *err)
{
    tenrec_status st;

    if (!TENREC_HAS(e->plugin.ops, post))
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "exporter '%s' sends nothing",
                           e->choice->name);
    pthread_mutex_lock(&e->posting);
    st = e->plugin.ops->post(&e->plugin, body, len, timeout_ms, err);
    pthread_mutex_unlock(&e->posting);
    return st;
}
