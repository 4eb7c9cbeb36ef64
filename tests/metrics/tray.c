/* SPDX-License-Identifier: Apache-2.0 */
/* tray.c - an observer for tests: its address is the path of a file, to which it adds "open", the
 * function of each span, the worker of each origin that leaves, and "close". A span of the function
 * "metrics" adds the number of the process's series, and those of "refuse" are not sent. The
 * address "nowhere" is refused. */
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

static void tray_add_metrics(struct tenrec_observer *self)
{
    struct tenrec_snapshot *all;
    char text[40];
    tenrec_error err;

    if (self->host->snapshot(self, &all, &err) != TENREC_OK)
        return;
    snprintf(text, sizeof text, "%zu-series", all->n_series);
    self->host->snapshot_free(self, all);
    tray_add(self, text);
}

static void tray_span(struct tenrec_observer *self, struct tenrec_span *s)
{
    tray_add(self, s->function);
    if (strcmp(s->function, "metrics") == 0)
        tray_add_metrics(self);
    self->host->span_done(self, s, strcmp(s->function, "refuse") != 0);
}

static void tray_leave(struct tenrec_observer *self, const struct tenrec_origin *origin)
{
    tray_add(self, origin->worker);
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

    if (strcmp(in->address, "nowhere") == 0)
        return tenrec_fail(err, TENREC_EINVAL, "there is no file 'nowhere'");
    self->impl = strdup(in->address);
    if (!self->impl)
        return tenrec_fail_errno(err, TENREC_ENOMEM, errno, "no memory");
    self->ops = &ops;
    tray_add(self, o->word);
    return TENREC_OK;
}
