/* SPDX-License-Identifier: Apache-2.0 */
/* cut_test.c PLUGIN OPTIONS [SERVICE...] - a plugin of today on the cores of its past: on a host
 * table that ends at each place where it has ended since the first one. Without one of the SERVICEs
 * the plugin refuses, and names it; with them it works. */
#include "../support/tensors.h"
#include "../testing.h"
#include "short_table.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <tenrec/backend.h>
#include <tenrec/config.h>
#include <tenrec/tensor.h>

#define N_MESSAGES 4
#define TENSOR_BYTES (1 << 20)

/* The ends of struct tenrec_host: that of the first table, and of each member since. */
#define END(member)                                                                                \
    {                                                                                              \
#member, offsetof(struct tenrec_host, member) +                                            \
                     sizeof(((const struct tenrec_host *)NULL)->member)                            \
    }
static const struct {
    const char *last;
    uint32_t size;
} ends[] = { END(peer_lost), END(caller_lost), END(sharing_open), END(sharing_close),
             END(share),     END(share_back),  END(shared),       END(exception_new),
             END(hold),      END(budget),      END(needs) };
#define N_ENDS (sizeof ends / sizeof ends[0])

static const char *name, *options, *const *services;
static int n_services;

/* ---- the plugin on a short table -------------------------------------------------------- */

static const struct tenrec_plugin *plugin;
static tenrec_init_agent_fn *real_init;
static uint32_t host_size;
static bool bare;  /* the host has no extensions */
static void *host; /* of the last agents */

static tenrec_status short_init(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    struct tenrec_host copy = *self->host;

    if (bare)
        copy.extensions = NULL;
    if (!host)
        host = short_table_new(&copy, host_size);
    self->host = host;
    return real_init(in, self, err);
}

static void load(void)
{
    tenrec_construct_options_fn *construct;
    tenrec_error err;
    char path[512];
    void *file;

    snprintf(path, sizeof path, PLUGINS "/%s.so", name);
    file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!file)
        fail_msg("%s", dlerror());
    plugin = dlsym(file, "tenrec_plugin");
    *(void **)&construct = dlsym(file, "tenrec_construct_options");
    *(void **)&real_init = dlsym(file, "tenrec_init_agent");
    assert_true(plugin && construct && real_init);
    assert_status(tenrec_register_backend(plugin, construct, short_init, &err), &err);
}

/* The last table that lacks what the plugin requires, by name; NULL: none does. */
static const char *lacks(size_t end)
{
    for (int i = 0; i < n_services; i++) {
        bool has = false;
        for (size_t k = 1; k <= end; k++)
            has |= strcmp(ends[k].last, services[i]) == 0;
        if (!has)
            return services[i];
    }
    return NULL;
}

/* ---- an exchange ------------------------------------------------------------------------- */

struct side {
    struct tenrec_chain *chain;
    atomic_int requests, answers, told, failed;
};

static void on_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    struct side *s = arg;
    struct tenrec_msg *answer;

    if (msg->type & TENREC_MSG_RESPONSE_BIT) {
        atomic_fetch_add(&s->answers, 1);
        msg->release(msg);
        return;
    }
    answer = tenrec_msg_new(0, 0);
    answer->type = TENREC_MSG_RET;
    answer->id = msg->id;
    answer->route = msg->route;
    answer->flags |= TENREC_MSG_CONTROL;
    if (msg->n_tensors == 1 && *((char *)tenrec_msg_tensor(msg, 0)->data + TENSOR_BYTES - 1) == 'T')
        atomic_fetch_add(&s->requests, 1);
    msg->release(msg);
    tenrec_chain_send(s->chain, from, answer, (struct tenrec_done){ NULL, NULL });
}

static void on_done(void *arg, const tenrec_error *err)
{
    struct side *s = arg;

    atomic_fetch_add(&s->failed, err != NULL);
    atomic_fetch_add(&s->told, 1);
}

static void send_one(struct side *s, tenrec_peer to, int64_t id)
{
    const int64_t shape[] = { TENSOR_BYTES };
    struct tenrec_msg *msg = tenrec_msg_new(4, 1);
    struct tenrec_tensor *t;
    tenrec_error err;

    assert_status(tensors_new(TENREC_INT8, 1, shape, TENREC_SHARED, &t, &err), &err);
    memset(tenrec_tensor_desc(t)->data, 'T', TENSOR_BYTES);
    memcpy(msg->payload, "ping", 4);
    msg->type = TENREC_MSG_CALL;
    msg->id = id;
    tenrec_msg_set_tensor(msg, 0, t);
    tenrec_chain_send(s->chain, to, msg, (struct tenrec_done){ on_done, s });
}

static tenrec_status open_sides(const struct tenrec_chain_options *of, struct side *side,
                                struct tenrec_member *member, uint32_t n, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (uint32_t i = 0; i < n && st == TENREC_OK; i++) {
        const struct tenrec_chain_user user = { .size = sizeof user,
                                                .deliver = on_deliver,
                                                .arg = &side[i] };
        member[i] = (struct tenrec_member){ .size = sizeof member[i],
                                            .id = (tenrec_peer)i,
                                            .incarnation = 7 + i,
                                            .name = i ? "b" : "a" };
        st = tenrec_chain_new(of, &user, &member[i], n, &side[i].chain, err);
        if (st == TENREC_OK)
            member[i].address = tenrec_chain_address(side[i].chain);
    }
    return st;
}

/* Every request is answered, by its receiver or by a wrapper that refuses it; a duplicate twice. */
static void exchange(struct side *side, const struct tenrec_member *member, uint32_t n)
{
    tenrec_error err;

    for (uint32_t i = 0; i < n; i++)
        assert_status(tenrec_chain_start(side[i].chain, member, n, &err), &err);
    for (int i = 0; i < N_MESSAGES; i++)
        send_one(&side[0], (tenrec_peer)n - 1, i);
    assert_becomes(atomic_load(&side[0].answers) >= N_MESSAGES);
    assert_becomes(atomic_load(&side[0].told) == N_MESSAGES);
    assert_int_equal(atomic_load(&side[0].failed), 0);
    assert_true(atomic_load(&side[n - 1].requests) > 0);
}

static void drop(void *arg, const char *key, const char *value)
{
    (void)arg, (void)key, (void)value;
}

static void run_on(const struct tenrec_chain_options *of, size_t end)
{
    const bool alone = plugin->flags & (TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_LOOPBACK_ONLY);
    const uint32_t n = alone ? 1 : 2;
    const char *missing = lacks(end);
    struct side side[2] = { { .chain = NULL } };
    struct tenrec_member member[2];
    tenrec_error err;
    tenrec_status st;
    char word[80];

    host_size = ends[end].size;
    st = open_sides(of, side, member, n, &err);
    if (missing) {
        snprintf(word, sizeof word, "lacks the service '%s'", missing);
        assert_int_equal(st, TENREC_EABI);
        assert_text_has(err.text, word);
    } else {
        assert_status(st, &err);
        exchange(side, member, n);
        tenrec_chain_list_debug_info(side[0].chain, drop, NULL);
    }
    /* All stop before any is freed: each borrows the address of the other. */
    for (uint32_t i = n; i-- > 0;)
        if (side[i].chain)
            tenrec_chain_stop(side[i].chain);
    for (uint32_t i = 0; i < n; i++)
        tenrec_chain_drop(side[i].chain);
    short_table_drop(host);
    host = NULL;
}

TEST(plugin_works_on_each_host_of_the_past_or_says_what_is_missing)
{
    struct tenrec_chain_options *of;
    struct tenrec_config *config;
    tenrec_error err;
    char yaml[512];

    assert_int_equal(ends[N_ENDS - 1].size, sizeof(struct tenrec_host)); /* a new one comes here */
    load();
    snprintf(
        yaml, sizeof yaml,
        "backend: it\nbackends:\n  echo: { plugin: echo }\n  it: { plugin: %s, options: %s%s }",
        name, options, plugin->flags & TENREC_PLUGIN_WRAPS ? ", wraps: echo" : "");
    assert_status(tenrec_config_parse(yaml, "t.yaml", &config, &err), &err);
    assert_status(tenrec_chain_options_new(config, &of, &err), &err);
    tenrec_config_drop(config);
    for (size_t i = 0; i < 2 * N_ENDS; i++) {
        bare = i % 2;
        print_message("# a host that ends with '%s'%s\n", ends[i / 2].last,
                      bare ? ", without extensions" : "");
        run_on(of, i / 2);
    }
    tenrec_chain_options_drop(of);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    name = argv[1];
    options = argv[2];
    services = (const char *const *)argv + 3;
    n_services = argc - 3;
    return testing_run(NULL, NULL);
}
