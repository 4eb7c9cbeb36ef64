/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus.c - serves the metrics of all workers of a host at one address.
 *
 * Each process gives its text at a socket of its own (share.c). The process that holds the lock
 * (neighbours.c) also serves the address (endpoint.c), and joins the texts of all (gather.c,
 * merge.c). When it ends, its lock is free, and another process serves within a second. */
#include "prometheus.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/observer_plugin.h>
#include <unistd.h>

enum {
    RETRY_MS = 500,  /* between two tries to serve */
    WARN_EACH = 120, /* failed tries: a warning a minute */
};

struct prometheus_options {
    uint64_t timeout_ms;
    struct text_options text;
};

static const struct tenrec_option options[] = {
    { .key = "timeout",
      .type = TENREC_OPT_DURATION,
      .offset = offsetof(struct prometheus_options, timeout_ms),
      .def = "2s",
      .min = 10,
      .max = 60000,
      .help = "Time in which the other processes of the host give their metrics." },
    { .key = "server_address",
      .type = TENREC_OPT_BOOL,
      .offset = offsetof(struct prometheus_options, text.server_address),
      .def = "false",
      .help = "Durations of outgoing calls apart by the called worker, in the label "
              "server_address: as many series as there are workers." },
    { .key = "bucket_step",
      .type = TENREC_OPT_INT,
      .offset = offsetof(struct prometheus_options, text.bucket_step),
      .def = "2",
      .min = 1,
      .max = 8,
      .help = "Powers of two from one bucket of a histogram to the next: 1 for all 26 buckets, 2 "
              "for 13." },
};

static tenrec_status prometheus_check(const void *o, const char *address, tenrec_error *err)
{
    struct address parsed;

    (void)o;
    return address_parse(address, &parsed, err);
}

static const struct tenrec_address_check address_check = {
    { TENREC_EXTENSION_ADDRESS, sizeof(struct tenrec_address_check), NULL },
    prometheus_check,
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_OBSERVER_PLUGIN_HEADER,
    .name = "prometheus",
    .version = "1.0.0",
    .summary = "Serves metrics to Prometheus, for all workers of a host at one address.",
    TENREC_PLUGIN_OPTIONS(options, struct prometheus_options),
    .extensions = &address_check.extension,
};

struct prometheus {
    struct tenrec_observer *self;
    struct address address;
    const char *address_text;
    uint64_t timeout_ms;
    const struct text_options *text;
    struct neighbours neighbours;
    struct endpoint endpoint;
    pthread_t thread;
    int share;      /* listens for the serving process */
    int wake[2];    /* a pipe, whose writing end is closed to end the thread */
    unsigned tries; /* that failed in a row */
};

/* ---- the answer ------------------------------------------------------------ */

static tenrec_status texts_join(const struct gather *g, char **ret, size_t *ret_len,
                                tenrec_error *err)
{
    FILE *to = open_memstream(ret, ret_len);
    int left_out = -1;

    if (to) {
        left_out = merge_texts(g->text, g->n, to);
        fprintf(to,
                "# HELP tenrec_metrics_missing_processes Processes of the host that did not give "
                "their metrics in time.\n# TYPE tenrec_metrics_missing_processes gauge\n"
                "tenrec_metrics_missing_processes %u\n",
                g->missing + (left_out > 0 ? (unsigned)left_out : 0));
    }
    if (to && fclose(to) == 0 && left_out >= 0)
        return TENREC_OK;
    if (to)
        free(*ret);
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for the metrics");
}

static tenrec_status prometheus_text(void *arg, char **ret, size_t *ret_len, tenrec_error *err)
{
    struct prometheus *p = arg;
    struct gather g;
    struct merge_text own = { 0 };
    bool ok = gather_texts(&p->neighbours, (uint32_t)p->timeout_ms, &g);
    tenrec_status st = ok ? TENREC_OK : tenrec_fail(err, TENREC_ENOMEM, "no memory");

    if (st == TENREC_OK)
        st = text_make(p->self, p->text, &own.data, &own.len, err);
    if (st == TENREC_OK) {
        g.text[g.n++] = own; /* there is room for one more */
        st = texts_join(&g, ret, ret_len, err);
        g.n--;
        free(own.data);
    }
    gather_finish(&g);
    return st;
}

/* ---- the thread ------------------------------------------------------------ */

/* Without the lock another process of this user serves; with it, but without the address, a
 * stranger. */
static void prometheus_try(struct prometheus *p)
{
    tenrec_error err;
    int fd = -1;

    if (!neighbours_lock(&p->neighbours))
        return;
    if (address_listen(&p->address, &fd, &err) == TENREC_OK) {
        if (endpoint_start(&p->endpoint, fd, &err) == TENREC_OK) {
            p->self->host->log(p->self, TENREC_LOG_INFO, "metrics are served at %s",
                               p->address_text);
            return;
        }
        close(fd);
    }
    neighbours_unlock(&p->neighbours);
    if (p->tries++ % WARN_EACH == 0)
        p->self->host->log(p->self, TENREC_LOG_WARN, "metrics are not served at %s: %s",
                           p->address_text, err.text);
}

static void *prometheus_run(void *arg)
{
    struct prometheus *p = arg;
    struct pollfd fd[] = { { .fd = p->wake[0], .events = POLLIN },
                           { .fd = p->share, .events = POLLIN } };

    while (!(fd[0].revents & (POLLIN | POLLHUP))) {
        if (poll(fd, 2, p->endpoint.daemon ? -1 : RETRY_MS) > 0 && fd[1].revents)
            share_answer(p->self, p->text, p->share);
        if (!p->endpoint.daemon)
            prometheus_try(p);
    }
    endpoint_stop(&p->endpoint);
    return NULL;
}

/* ---- opening and closing --------------------------------------------------- */

static void prometheus_free(struct prometheus *p)
{
    for (int i = 0; i < 2; i++)
        if (p->wake[i] >= 0)
            close(p->wake[i]);
    if (p->share >= 0)
        close(p->share);
    free(p);
}

static void prometheus_close(struct tenrec_observer *self)
{
    struct prometheus *p = self->impl;

    close(p->wake[1]);
    p->wake[1] = -1;
    pthread_join(p->thread, NULL);
    if (p->address.u.any.sa_family == AF_UNIX && neighbours_lock(&p->neighbours))
        unlink(p->address.u.local.sun_path);
    neighbours_close(&p->neighbours);
    prometheus_free(p);
}

static tenrec_status prometheus_start(struct prometheus *p, tenrec_error *err)
{
    char within[TENREC_PRIVATE_FOLDER_MAX];
    tenrec_status st = TENREC_REQUIRES(p->self->host, private_folder, err);

    if (st == TENREC_OK)
        st = p->self->host->private_folder(p->self, within, err);
    if (st == TENREC_OK)
        st = neighbours_open(&p->neighbours, within, p->address_text, err);
    if (st != TENREC_OK)
        return st;
    st = share_listen(&p->neighbours.own, &p->share, err);
    if (st == TENREC_OK && pipe2(p->wake, O_CLOEXEC) != 0)
        st = tenrec_fail_errno(err, TENREC_EOS, errno, "cannot make a pipe");
    if (st == TENREC_OK) {
        pthread_attr_t attr;
        int r;

        prometheus_try(p); /* here, so that the first worker serves once it runs */
        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, TENREC_THREAD_STACK);
        r = pthread_create(&p->thread, &attr, prometheus_run, p);
        pthread_attr_destroy(&attr);
        if (r != 0)
            st = tenrec_fail_errno(err, TENREC_EOS, r, "cannot start a thread");
    }
    if (st != TENREC_OK) {
        endpoint_stop(&p->endpoint);
        neighbours_close(&p->neighbours);
    }
    return st;
}

static const struct tenrec_observer_ops ops = {
    .size = sizeof ops,
    .close = prometheus_close,
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
    const struct prometheus_options *o = in->options;
    struct prometheus *p = calloc(1, sizeof *p);
    tenrec_status st;

    if (!p)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory");
    p->self = self;
    p->address_text = in->address;
    p->timeout_ms = o->timeout_ms;
    p->text = &o->text;
    p->share = p->wake[0] = p->wake[1] = -1;
    p->endpoint = (struct endpoint){ .fn = prometheus_text, .arg = p };
    st = address_parse(in->address, &p->address, err);
    if (st == TENREC_OK)
        st = prometheus_start(p, err);
    if (st != TENREC_OK) {
        prometheus_free(p);
        return st;
    }
    if (p->address.beyond)
        self->host->log(self, TENREC_LOG_WARN, "other hosts can read the metrics at %s",
                        in->address);
    self->impl = p;
    self->ops = &ops;
    return TENREC_OK;
}
