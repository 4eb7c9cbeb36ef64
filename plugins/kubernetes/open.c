/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - opens a store from a URL, options and what a pod is given, and frees it. */
#include "kubernetes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

static const struct store_url_form form = { "kubernetes", 443, 1 };

/* Names of the API have these alone. */
static bool open_is_name(const char *text)
{
    const size_t len = strlen(text);

    return len > 0 && len <= 200 &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.")] == '\0' && text[0] != '-' &&
           text[0] != '.' && text[len - 1] != '-' && text[len - 1] != '.';
}

/* The URL without a host is that of the API server in the variables of a pod. */
static tenrec_status open_read(const char *url, struct store_url *ret, tenrec_error *err)
{
    const char *rest = strstr(url, "://"), *host = secure_getenv("KUBERNETES_SERVICE_HOST"),
               *port = secure_getenv("KUBERNETES_SERVICE_PORT");
    const bool inside = rest && (rest[3] == '/' || rest[3] == '\0');
    char whole[1024];
    tenrec_status st;

    if (inside && !host)
        return tenrec_fail(err, TENREC_EINVAL,
                           "expected kubernetes://host:port/name: this process runs in no pod "
                           "(KUBERNETES_SERVICE_HOST is not set)");
    if (inside) {
        snprintf(whole, sizeof whole,
                 strchr(host, ':') ? "kubernetes://[%.200s]:%.8s%.500s"
                                   : "kubernetes://%.200s:%.8s%.500s",
                 host, port ? port : "443", rest + 3);
        url = whole;
    }
    st = store_url_read(url, &form, ret, err);
    if (st == TENREC_OK && (*ret->user || *ret->password))
        st =
            tenrec_fail(err, TENREC_EINVAL, "a user and a password are not used: see 'token_file'");
    if (st == TENREC_OK && !open_is_name(ret->prefix))
        st = tenrec_fail(err, TENREC_EINVAL,
                         "the name \"%.80s\" has other characters than a-z, 0-9, '-' and '.'",
                         ret->prefix);
    return st;
}

/* The option, or else the file of the pod, if there is one. */
static tenrec_status open_file(const char *option, const char *own, const char *what, size_t room,
                               char *ret, tenrec_error *err)
{
    if (strlen(option) >= room)
        return tenrec_fail(err, TENREC_ECONFIG, "'%s' is longer than %zu bytes", what, room - 1);
    snprintf(ret, room, "%s", *option ? option : own);
    if (access(ret, R_OK) == 0)
        return TENREC_OK;
    if (*option)
        return tenrec_fail_errno(err, TENREC_ECONFIG, errno, "cannot read '%s' \"%s\"", what,
                                 option);
    *ret = '\0';
    return TENREC_OK;
}

static void open_name_space(const char *option, size_t room, char *ret)
{
    FILE *f = *option ? NULL : fopen(ACCOUNT "namespace", "re");

    snprintf(ret, room, "%s", *option ? option : "default");
    if (f && fgets(ret, (int)room, f))
        ret[strcspn(ret, "\r\n")] = '\0';
    if (f)
        fclose(f);
}

static tenrec_status open_fill(struct kubernetes_store *s, tenrec_error *err)
{
    const struct kubernetes_options *o = s->options;
    const struct store_host *at = &s->url.at[0];
    const bool v6 = strchr(at->host, ':') != NULL;
    char name_space[128];
    tenrec_status st = TENREC_OK;

    store_url_name(&s->url, &form, sizeof s->name, s->name);
    open_name_space(o->name_space, sizeof name_space, name_space);
    if (!open_is_name(name_space))
        return tenrec_fail(err, TENREC_ECONFIG, "\"%.80s\" is no name of a namespace", name_space);
    snprintf(s->base, sizeof s->base, "http%s://%s%s%s:%u/api/v1/namespaces/%s", o->tls ? "s" : "",
             v6 ? "[" : "", at->host, v6 ? "]" : "", at->port, name_space);
    if (o->tls) /* a token is sent over TLS alone */
        st = open_file(o->token_file, ACCOUNT "token", "token_file", sizeof s->token_file,
                       s->token_file, err);
    if (st == TENREC_OK && o->tls)
        st = open_file(o->ca_file, ACCOUNT "ca.crt", "ca_file", sizeof s->ca_file, s->ca_file, err);
    s->pool.ca_file = s->ca_file;
    return st == TENREC_OK ? store_draw(s->client, err) : st;
}

void kubernetes_free(struct kubernetes_store *s)
{
    http_pool_finish(&s->pool);
    turn_finish(&s->turn);
    free(s);
}

tenrec_status kubernetes_open(const struct tenrec_store_init *in, struct tenrec_plugin_store *self,
                              tenrec_error *err)
{
    const struct kubernetes_options *o = in->options;
    const uint64_t wanted_ms = o->lease_ms == TENREC_FOREVER ? 0 : o->lease_ms;
    struct kubernetes_store *s = calloc(1, sizeof *s);
    tenrec_status st;

    if (!s)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    s->self = self;
    s->options = o;
    s->asker = (struct asker){ .self = self, .name = s->name, .n_endpoints = 1 };
    s->pool = (struct http_pool){
        .server = "a Kubernetes API", .ca_file = "", .cert_file = "", .key_file = ""
    };
    http_pool_init(&s->pool);
    turn_init(&s->turn);
    s->keeper = (struct keeper){ .self = self, .name = s->name, .renew = owner_keep, .arg = s };
    st = open_read(in->url, &s->url, err);
    if (st == TENREC_OK) {
        st = open_fill(s, err);
        if (st == TENREC_OK)
            st = owner_find(s, wanted_ms, in->deadline_ns, err);
        s->asker.is_open = st == TENREC_OK;
        if (st == TENREC_OK)
            st = keeper_start(&s->keeper, wanted_ms, "tenrec-k8s", err);
        if (st != TENREC_OK)
            tenrec_error_prefix(err, "%s", s->name);
    }
    if (st != TENREC_OK) {
        kubernetes_free(s);
        return st;
    }
    self->ops = &kubernetes_ops;
    self->impl = s;
    return TENREC_OK;
}
