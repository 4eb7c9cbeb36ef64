/* SPDX-License-Identifier: Apache-2.0 */
/* tray.c - an observer that writes to a file, its address: "open", the function of each span, each
 * worker that leaves with the number of series of the process, and "close". */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/observer_plugin.h>

static const struct tenrec_option options[] = {
    { "word",
      TENREC_OPT_STRING,
      0,
      0,
      0,
      "open",
      0,
      0,
      NULL,
      "What it adds first.",
      NULL,
      { NULL } },
};

struct tray_options {
    const char *word;
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_OBSERVER_PLUGIN_HEADER,
    .name = "tray",
    .version = "1",
    .summary = "Writes the names of spans to a file.",
    TENREC_PLUGIN_OPTIONS(options, struct tray_options),
};

static void tray_add(const struct tenrec_observer *self, const char *text)
{
    FILE *f = fopen(self->impl, "a");

    if (!f)
        return;
    fprintf(f, "%s ", text);
    fclose(f);
}

static void tray_close(struct tenrec_observer *self)
{
    tray_add(self, "close");
    free(self->impl);
}

static void tray_span(struct tenrec_observer *self, struct tenrec_span *s)
{
    tray_add(self, s->function);
    self->host->span_done(self, s, true);
}

/* No span waits here. */
static void tray_leave(struct tenrec_observer *self, const struct tenrec_origin *origin)
{
    struct tenrec_snapshot *all;
    char text[200];
    tenrec_error err;

    if (self->host->snapshot(self, &all, &err) != TENREC_OK)
        return;
    snprintf(text, sizeof text, "%s:%zu", origin->worker, all->n_series);
    self->host->snapshot_free(self, all);
    tray_add(self, text);
}

static const struct tenrec_observer_ops ops = {
    .size = sizeof ops, .close = tray_close, .span = tray_span, .leave = tray_leave
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts;
    (void)err;
    return TENREC_OK;
}

tenrec_status tenrec_init_observer(const struct tenrec_observer_init *in,
                                   struct tenrec_observer *self, tenrec_error *err)
{
    const struct tray_options *o = in->options;
    FILE *f;

    f = fopen(in->address, "a");
    if (!f)
        return tenrec_fail_errno(err, TENREC_EINVAL, errno, "cannot write '%s'", in->address);
    fclose(f);
    self->impl = strdup(in->address);
    if (!self->impl)
        return tenrec_fail_errno(err, TENREC_ENOMEM, errno, "no memory");
    self->ops = &ops;
    tray_add(self, o->word);
    return TENREC_OK;
}
