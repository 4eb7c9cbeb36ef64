/* SPDX-License-Identifier: Apache-2.0 */
/* tray.c - an exporter for tests: its address is the path of a file, to which it adds "open", each
 * batch, and "close". The address "nowhere" is refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/exporter_plugin.h>

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
    TENREC_EXPORTER_PLUGIN_HEADER,
    .name = "tray",
    .version = "1",
    .summary = "Writes batches to a file.",
    TENREC_PLUGIN_OPTIONS(options, struct tray_options),
};

static void tray_add(const struct tenrec_exporter *self, const void *text, size_t len)
{
    FILE *f = fopen(self->impl, "a");

    if (!f)
        return;
    fwrite(text, 1, len, f);
    fputc(' ', f);
    fclose(f);
}

static void tray_close(struct tenrec_exporter *self)
{
    tray_add(self, "close", 5);
    free(self->impl);
}

/* "metrics" adds whether the host gives them. */
static tenrec_status tray_post(struct tenrec_exporter *self, const void *body, size_t len,
                               uint32_t timeout_ms, tenrec_error *err)
{
    char *text;
    size_t n;

    (void)timeout_ms;
    if (len == 6 && memcmp(body, "refuse", 6) == 0)
        return tenrec_fail(err, TENREC_EPERM, "refused on purpose");
    if (len != 7 || memcmp(body, "metrics", 7) != 0) {
        tray_add(self, body, len);
        return TENREC_OK;
    }
    if (self->host->metrics_text(self, &text, &n, err) != TENREC_OK)
        return TENREC_ENOMEM;
    tray_add(self, text, n < 6 ? n : 6);
    self->host->text_free(self, text);
    return TENREC_OK;
}

static const struct tenrec_exporter_ops ops = { .size = sizeof ops,
                                                .close = tray_close,
                                                .post = tray_post };

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts;
    (void)err;
    return TENREC_OK;
}

tenrec_status tenrec_init_exporter(const struct tenrec_exporter_init *in,
                                   struct tenrec_exporter *self, tenrec_error *err)
{
    const struct tray_options *o = in->options;

    if (strcmp(in->address, "nowhere") == 0)
        return tenrec_fail(err, TENREC_EINVAL, "there is no file 'nowhere'");
    self->impl = strdup(in->address);
    if (!self->impl)
        return tenrec_fail_errno(err, TENREC_ENOMEM, errno, "no memory");
    self->ops = &ops;
    tray_add(self, o->word, strlen(o->word));
    return TENREC_OK;
}
