/* SPDX-License-Identifier: Apache-2.0 */
/* ping.c - `tenrec ping`: calls a worker, and shows the round trip and the transport.
 *
 * Everything is collected into one JSON object, from which the text is printed
 * too, so that both agree. */
#include "core/base/clock.h"
#include "group/meeting/meeting.h"
#include "group/meeting/membership.h"
#include "observe/profiler/profiler.h"
#include "outside.h"
#include "rpc/future/worker.h"
#include "rpc/worker/worker.h"
#include "samples.h"
#include "tool.h"

#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 10, MOST_CALLS = 1000000, STORE_MS = 500, LARGE = 1 << 20 };

/* ---- the members ------------------------------------------------------------- */

static void list_members(const struct outside *o, json_t *all)
{
    struct membership *m = group_of(o->worker)->membership;
    json_t *list = json_array();

    for (uint32_t i = 0; i < membership_world(m); i++) {
        const struct member *one = &m->members->list[i];
        char text[128];
        const char *why =
            membership_absence(m, one->rank, clock_deadline_ms(STORE_MS), text, sizeof text);
        json_t *row = json_pack("{s:s, s:i, s:s}", "name", one->name, "id", (int)one->rank,
                                "address", one->address);

        if (why)
            json_object_set_new(row, "absent", json_string(why));
        json_array_append_new(list, row);
    }
    json_object_set_new(all, "members", list);
}

static void print_members(const json_t *all)
{
    const json_t *row;
    size_t i;

    printf("group \"%s\" in %s, %zu worker%s\n", inspect_text(all, "group"),
           inspect_text(all, "store"), json_array_size(json_object_get(all, "members")),
           json_array_size(json_object_get(all, "members")) == 1 ? "" : "s");
    json_array_foreach(json_object_get(all, "members"), i, row)
        printf("  %-5" JSON_INTEGER_FORMAT " %-20s %s%s%s\n", inspect_number(row, "id"),
               inspect_text(row, "name"), inspect_text(row, "address"),
               *inspect_text(row, "absent") ? "  absent: " : "", inspect_text(row, "absent"));
}

/* ---- one of them -------------------------------------------------------------- */

/* "tensorpipe.peer.3.transport" and "tensorpipe.not_used.channel.cma" */
struct way {
    json_t *all;
    char peer[32]; /* ".peer.3." */
};

static void add_not_used(const struct way *way, const char *kind, size_t kind_len, const char *name,
                         size_t name_len, const char *reason, size_t reason_len)
{
    json_array_append_new(json_object_get(way->all, "not_used"),
                          json_pack("{s:s%, s:s%, s:s%}", "kind", kind, kind_len, "name", name,
                                    name_len, "reason", reason, reason_len));
}

/* The end of an item of the list below: that of the text, or where the next item begins. */
static size_t item_length(const char *text)
{
    const char *transport = strstr(text, "; transport "), *channel = strstr(text, "; channel ");
    const char *end = transport && (!channel || transport < channel) ? transport : channel;

    return end ? (size_t)(end - text) : strlen(text);
}

/* "transport shm: why; channel cma: why" */
static void add_all_not_used(const struct way *way, const char *text)
{
    while (*text) {
        const size_t len = item_length(text), kind = strcspn(text, " ");
        const char *name = text + kind + 1, *reason = strstr(text, ": ");

        if (!reason || reason >= text + len || name >= reason)
            return;
        add_not_used(way, text, kind, name, (size_t)(reason - name), reason + 2,
                     len - (size_t)(reason + 2 - text));
        text += len;
        text += *text ? 2 : 0;
    }
}

/* What ping shows of a backend's debug info about the peer, and the kind of what it could use
 * instead. A backend pushes those that it has. */
static const struct {
    const char *key, *not_used;
} shown[] = { { "transport", "transport" },
              { "transports", "transport" },
              { "channel", "channel" },
              { "way", "way" } };
enum { N_SHOWN = sizeof shown / sizeof shown[0] };

static void on_info(void *arg, const char *key, const char *value)
{
    const struct way *way = arg;
    const char *at = strstr(key, way->peer), *not_used = strstr(key, ".not_used.");

    if (strcmp(key, "worker.backend") == 0)
        json_object_set_new(way->all, "backend", json_string(value));
    if (at) {
        at += strlen(way->peer);
        for (size_t i = 0; i < N_SHOWN; i++)
            if (strcmp(at, shown[i].key) == 0 && strcmp(value, "none") != 0)
                json_object_set_new(way->all, shown[i].key, json_string(value));
        if (strcmp(at, "not_used") == 0)
            add_all_not_used(way, value);
    } else if (not_used) { /* by anybody */
        const char *name = not_used + strlen(".not_used.");
        size_t n = strcspn(name, ".");
        const char *rest = name[n] ? name + n + 1 : "";

        add_not_used(way, name, n, rest, strlen(rest), value, strlen(value));
    }
}

static tenrec_status ping_call(const struct outside *o, const char *name, uint64_t *ret_ns,
                               tenrec_error *err)
{
    struct tenrec_call_options call = outside_call(o);
    uint64_t begin = samples_now_ns();
    tenrec_status st = tenrec_rpc_sync(o->worker, name, "tenrec.ping", NULL, 0, &call, NULL, err);

    *ret_ns = samples_now_ns() - begin;
    return st;
}

/* A backend may open the way of large tensors with the first of them, and know it only with the
 * answer. A worker that takes none is no failure: the way is not known then. */
static void ping_large(const struct outside *o, const char *name)
{
    const struct tenrec_call_options call = outside_call(o);
    struct tenrec_tensor *t;
    struct tenrec_value v;

    if (tenrec_tensor_new(TENREC_UINT8, 1, (int64_t[]){ LARGE }, &t, NULL) != TENREC_OK)
        return;
    memset(tenrec_tensor_data(t), 0, LARGE);
    v = tenrec_value_tensor(t);
    for (int i = 0; i < 2; i++)
        tenrec_rpc_sync(o->worker, name, "tenrec.ping", &v, 1, &call, NULL, NULL);
    tenrec_tensor_drop(t);
}

/* The first call includes the connection, and is counted apart. */
static tenrec_status ping_measure(const struct outside *o, const char *name, int calls, json_t *all,
                                  tenrec_error *err)
{
    struct samples s;
    int answered = 0;
    uint64_t ns = 0;
    tenrec_status st;

    if (samples_init(&s, (size_t)calls))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %d times", calls);
    st = ping_call(o, name, &ns, err);
    json_object_set_new(all, "first_us", json_real((double)ns / 1e3));
    for (int i = 0; st == TENREC_OK && i < calls; i++) {
        st = ping_call(o, name, &ns, err);
        if (st != TENREC_OK)
            break;
        samples_add(&s, ns);
        answered++;
    }
    /* After some answers a timeout means that the limit expired, not that the worker
     * is lost. */
    if (st == TENREC_ETIMEDOUT && answered > 0 && clock_passed(o->until_ns))
        st = TENREC_OK;
    json_object_set_new(all, "calls", json_integer(answered));
    json_object_set_new(all, "calls_asked", json_integer(calls));
    json_object_set_new(all, "min_us", json_real(samples_us(&s, 0)));
    json_object_set_new(all, "median_us", json_real(samples_us(&s, 0.5)));
    json_object_set_new(all, "max_us", json_real(samples_us(&s, 1)));
    samples_finish(&s);
    if (st != TENREC_OK)
        outside_explain(o, name, err);
    return st;
}

static tenrec_status ping_one(const struct outside *o, const char *name, int calls, json_t *all,
                              tenrec_error *err)
{
    struct way way = { .all = all };
    struct tenrec_worker_info info;
    tenrec_status st = tenrec_get_worker_info(o->worker, name, &info, err);

    if (st == TENREC_OK)
        st = ping_measure(o, name, calls, all, err);
    if (st != TENREC_OK)
        return st;
    ping_large(o, name);
    json_object_set_new(all, "worker", json_string(info.name));
    json_object_set_new(all, "id", json_integer(info.id));
    json_object_set_new(all, "address",
                        json_string(membership_address(group_of(o->worker)->membership, info.id)));
    json_object_set_new(all, "not_used", json_array());
    snprintf(way.peer, sizeof way.peer, ".peer.%d.", (int)info.id);
    debug_info_list(o->worker, on_info, &way);
    if (!json_object_get(all, "way"))
        json_object_set_new(all, "way",
                            json_sprintf("messages of backend '%s'", inspect_text(all, "backend")));
    return TENREC_OK;
}

static void print_way(const json_t *all, const char *key, const char *not_used)
{
    const json_t *row;
    size_t i;

    if (!*inspect_text(all, key))
        return;
    printf("  %-12s%s\n", key, inspect_text(all, key));
    json_array_foreach(json_object_get(all, "not_used"), i, row)
    {
        if (strcmp(inspect_text(row, "kind"), not_used) == 0)
            printf("  %-12snot %s: %s\n", "", inspect_text(row, "name"),
                   inspect_text(row, "reason"));
    }
}

static double ping_us(const json_t *object, const char *key)
{
    return json_real_value(json_object_get(object, key));
}

static void print_one(const json_t *all)
{
    printf("%s (id %" JSON_INTEGER_FORMAT ") of group \"%s\" in %s, %" JSON_INTEGER_FORMAT
           " worker%s\n",
           inspect_text(all, "worker"), inspect_number(all, "id"), inspect_text(all, "group"),
           inspect_text(all, "store"), inspect_number(all, "workers"),
           inspect_number(all, "workers") == 1 ? "" : "s");
    printf("  %-12s%s\n", "address", inspect_text(all, "address"));
    printf("  %-12smin %.1f us, median %.1f us, max %.1f us of %" JSON_INTEGER_FORMAT " call%s\n",
           "round trip", ping_us(all, "min_us"), ping_us(all, "median_us"), ping_us(all, "max_us"),
           inspect_number(all, "calls"), inspect_number(all, "calls") == 1 ? "" : "s");
    if (inspect_number(all, "calls") < inspect_number(all, "calls_asked"))
        printf("  %-12sthe limit expired before %" JSON_INTEGER_FORMAT
               " calls (--timeout, --count)\n",
               "", inspect_number(all, "calls_asked"));
    printf("  %-12s%.1f us, including the connection\n", "first call", ping_us(all, "first_us"));
    printf("  %-12s%s\n", "backend", inspect_text(all, "backend"));
    for (size_t i = 0; i < N_SHOWN; i++)
        print_way(all, shown[i].key, shown[i].not_used);
}

/* ---- the command ---------------------------------------------------------------- */

static int ping_ping(const struct tool *self, struct outside *o, const char *name, int calls,
                     bool as_json)
{
    json_t *all = NULL;
    tenrec_error err;
    tenrec_status st = outside_open(o, &err);

    if (st == TENREC_OK) {
        const struct membership *m = group_of(o->worker)->membership;

        all = json_pack("{s:s, s:s, s:i}", "group", membership_group(m), "store",
                        membership_store_name(m), "workers", (int)membership_world(m));
        if (name)
            st = ping_one(o, name, calls, all, &err);
        else
            list_members(o, all);
    }
    if (st == TENREC_OK && as_json) {
        inspect_print_json(all);
    } else if (st == TENREC_OK) {
        (name ? print_one : print_members)(all);
    }
    json_decref(all);
    outside_close(o);
    return st ? tool_fail(self, "%s", err.text) : TOOL_OK;
}

static int ping_main(const struct tool *self, int argc, char **argv)
{
    struct outside o = { .command = self->name, .limit_ms = OUTSIDE_LIMIT_MS };
    int calls = CALLS;
    bool as_json = false;
    const struct tool_option option[] = { OUTSIDE_OPTIONS(o),
                                          { "count", 'N', TOOL_NUMBER, &calls, 1, MOST_CALLS },
                                          { "json", 'j', TOOL_FLAG, &as_json, 0, 0 } };
    int c = tool_options(self, argc, argv, false, option, sizeof option / sizeof option[0]);

    if (c != TOOL_GO_ON)
        return c;
    if (argc - optind > 1)
        return tool_misuse(self, "takes one worker, got %d", argc - optind);
    if (as_json)
        o.command = NULL;
    return ping_ping(self, &o, argv[optind], calls, as_json);
}

const struct tool tool_ping = {
    .name = "ping",
    .usage = "[WORKER] " OUTSIDE_USAGE "\n                  [--count N] [--json]",
    .summary = "call a worker of a running group from outside",
    .help =
        "Finds a running group through its store, calls WORKER without joining, and shows the\n"
        "round trip, the transport and channel, the way of large tensors and of the bytes of\n"
        "regions, and why better ones are not used. Without WORKER the command lists the\n"
        "members. The exit status is 0 if WORKER answered, also if the limit expired before the\n"
        "last call; else 1, with the error on stderr.\n"
        "\n" OUTSIDE_HELP "\n"
        "  -N, --count N    number of calls (10)\n"
        "  -j, --json       JSON, one object a line",
    .main = ping_main,
};
