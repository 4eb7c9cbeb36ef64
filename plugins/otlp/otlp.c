/* SPDX-License-Identifier: Apache-2.0 */
/* otlp.c - sends spans to an OpenTelemetry collector, by OTLP over HTTP in JSON. */
#include "otlp.h"

#include <stddef.h>
#include <stdlib.h>
#include <tenrec/observer_plugin.h>

struct otlp_options {
    struct tenrec_option_map headers;
    const char *ca_file;
};

static const struct tenrec_option options[] = {
    { .key = "headers",
      .type = TENREC_OPT_MAP,
      .item = TENREC_OPT_STRING,
      .offset = offsetof(struct otlp_options, headers),
      .flags = TENREC_OPT_SECRET,
      .help = "Headers of each request, such as {authorization: Bearer ...}." },
    { .key = "ca_file",
      .type = TENREC_OPT_STRING,
      .offset = offsetof(struct otlp_options, ca_file),
      .def = "",
      .help = "File of the authorities that sign the certificate of an https:// collector; without "
              "it those of the system." },
};

static tenrec_status otlp_check(const void *o, const char *address, tenrec_error *err)
{
    struct collector c;
    tenrec_status st = collector_parse(address, &c, err);

    (void)o;
    collector_finish(&c);
    return st;
}

static const struct tenrec_address_check address_check = {
    { TENREC_EXTENSION_ADDRESS, sizeof(struct tenrec_address_check), NULL },
    otlp_check,
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_OBSERVER_PLUGIN_HEADER,
    .name = "otlp",
    .version = "1.0.0",
    .summary = "Sends spans of calls to an OpenTelemetry collector, by OTLP over HTTP.",
    TENREC_PLUGIN_OPTIONS(options, struct otlp_options),
    .extensions = &address_check.extension,
};

struct otlp {
    struct collector collector;
    struct post *post;
    struct queue *queue;
};

static void otlp_free(struct otlp *o)
{
    post_close(o->post);
    collector_finish(&o->collector);
    free(o);
}

static void otlp_close(struct tenrec_observer *self)
{
    struct otlp *o = self->impl;

    queue_close(o->queue);
    otlp_free(o);
}

static void otlp_span(struct tenrec_observer *self, struct tenrec_span *s)
{
    const struct otlp *o = self->impl;

    queue_add(o->queue, s);
}

static void otlp_leave(struct tenrec_observer *self, const struct tenrec_origin *origin)
{
    const struct otlp *o = self->impl;

    queue_leave(o->queue, origin);
}

static tenrec_status otlp_post(void *arg, const void *body, size_t len, uint32_t timeout_ms,
                               tenrec_error *err)
{
    const struct otlp *o = arg;

    return post_send(o->post, body, len, timeout_ms, err);
}

static const struct tenrec_observer_ops ops = {
    .size = sizeof ops,
    .close = otlp_close,
    .span = otlp_span,
    .leave = otlp_leave,
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
    const struct otlp_options *options_of = in->options;
    struct otlp *o;
    bool here;
    tenrec_status st = TENREC_REQUIRES(self->host, is_this_host, err);

    if (st != TENREC_OK)
        return st;
    o = calloc(1, sizeof *o);
    if (!o)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory");
    st = collector_parse(in->address, &o->collector, err);
    here = st == TENREC_OK && self->host->is_this_host(self, o->collector.host);
    if (st == TENREC_OK)
        st = post_open(o->collector.url, here, &options_of->headers, options_of->ca_file, &o->post,
                       err);
    if (st == TENREC_OK)
        st = queue_open(self, otlp_post, o, &o->queue, err);
    if (st != TENREC_OK) {
        otlp_free(o);
        return st;
    }
    if (o->collector.plain && !here)
        self->host->log(self, TENREC_LOG_WARN, "spans%s go to %s without TLS",
                        options_of->headers.n > 0 ? " and secret headers" : "", o->collector.url);
    self->impl = o;
    self->ops = &ops;
    return TENREC_OK;
}
