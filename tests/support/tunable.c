/* SPDX-License-Identifier: Apache-2.0 */
#include "tunable.h"
#include "../testing.h"

#include <stdatomic.h>
#include <tenrec/backend.h>

struct tunable_options {
    int64_t level, fixed;
    struct tenrec_option_list words;
};

struct tunable {
    _Atomic(const struct tunable_options *) opt;
    atomic_int prepared, committed, discarded;
};

#define AT(field) offsetof(struct tunable_options, field)
static const struct tenrec_option options[] = {
    { .key = "level",
      .type = TENREC_OPT_INT,
      .offset = AT(level),
      .flags = TENREC_OPT_RUNTIME,
      .def = "1",
      .max = 9,
      .help = "May change." },
    { .key = "words",
      .type = TENREC_OPT_LIST,
      .item = TENREC_OPT_STRING,
      .offset = AT(words),
      .flags = TENREC_OPT_RUNTIME,
      .def = "[]",
      .help = "May change." },
    { .key = "fixed",
      .type = TENREC_OPT_INT,
      .offset = AT(fixed),
      .def = "1",
      .help = "May not change." },
};

static const struct tenrec_plugin tunable = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct tunable_options),
    .flags = TENREC_PLUGIN_WRAPS,
    .name = "tunable",
    .version = "1.0",
    .summary = "Changes while it runs.",
};

static tenrec_status tunable_construct(void *opts, tenrec_error *err)
{
    const struct tunable_options *o = opts;

    return o->level == 7 ? tenrec_fail(err, TENREC_ECONFIG, "level 7 is refused") : TENREC_OK;
}

static tenrec_status tunable_prepare(struct tenrec_agent *self, const void *opts, void **ret,
                                     tenrec_error *err)
{
    const struct tunable_options *o = opts;
    struct tunable *t = self->impl;

    if (o->level == 8)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for level 8");
    t->prepared++;
    *ret = (void *)(uintptr_t)o;
    return TENREC_OK;
}

static void tunable_commit(struct tenrec_agent *self, void *change)
{
    struct tunable *t = self->impl;

    atomic_store(&t->opt, change);
    t->committed++;
}

static void tunable_discard(struct tenrec_agent *self, void *change)
{
    struct tunable *t = self->impl;

    (void)change;
    t->discarded++;
}

static void tunable_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                         struct tenrec_done done)
{
    const struct tunable *t = self->impl;

    if (atomic_load(&t->opt)->level <= 9)
        self->host->send_inner(self, to, msg, done);
}

static void tunable_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    struct tunable *t = self->impl;
    const struct tunable_options *o = atomic_load(&t->opt);
    const long long n[] = { o->level, (long long)o->words.n, t->prepared, t->committed,
                            t->discarded };
    static const char *const keys[] = { "level", "words", "prepared", "committed", "discarded" };
    char text[24];

    for (size_t i = 0; i < sizeof n / sizeof n[0]; i++) {
        snprintf(text, sizeof text, "%lld", n[i]);
        sink(arg, keys[i], text);
    }
}

static void tunable_destroy(struct tenrec_agent *self)
{
    free(self->impl);
}

static const struct tenrec_reconfigure reconfigure = {
    .extension = { TENREC_EXTENSION_RECONFIGURE, sizeof reconfigure, NULL },
    .prepare = tunable_prepare,
    .commit = tunable_commit,
    .discard = tunable_discard,
};

static const struct tenrec_agent_ops tunable_ops = { .size = sizeof tunable_ops,
                                                     .extensions = &reconfigure.extension,
                                                     .send = tunable_send,
                                                     .destroy = tunable_destroy,
                                                     .debug_info = tunable_debug_info };

static tenrec_status tunable_init(const struct tenrec_init *in, struct tenrec_agent *self,
                                  tenrec_error *err)
{
    struct tunable *t = calloc(1, sizeof *t);

    if (!t)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory");
    atomic_init(&t->opt, in->options);
    self->impl = t;
    self->ops = &tunable_ops;
    return TENREC_OK;
}

void tunable_register(void)
{
    tenrec_error err;

    if (!tenrec_backend_registered("tunable") &&
        tenrec_register_backend(&tunable, tunable_construct, tunable_init, &err) != TENREC_OK)
        fail_msg("%s", err.text);
}
