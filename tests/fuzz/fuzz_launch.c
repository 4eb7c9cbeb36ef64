/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_launch.c - texts that name places: variables of launchers, lists of nodes, addresses,
 * URLs. The first byte says which reader gets the rest. */
#include "fuzz.h"

#include "core/base/resolve.h"
#include "group/meeting/launch.h"
#include "store/url.h"

struct text {
    char *at;
    size_t len;
};

/* Lines "NAME=value" as the environment; NULL: the real one. */
static const struct text *variables;

char *__real_secure_getenv(const char *name);
char *__wrap_secure_getenv(const char *name);

char *__wrap_secure_getenv(const char *name)
{
    const struct text *t = variables;
    const size_t n = strlen(name);

    if (!t)
        return __real_secure_getenv(name);
    for (char *line = t->at; line < t->at + t->len; line += strlen(line) + 1)
        if (strncmp(line, name, n) == 0 && line[n] == '=')
            return line + n + 1;
    return NULL;
}

static void read_variables(void)
{
    struct launch l;
    tenrec_error err;

    if (launch_detect(-1, -1, &l, &err) != TENREC_OK)
        return;
    fuzz_expect(l.rank >= -1 && l.world >= -1 && l.world != 0);
    if (launch_find_store(&l, &err) == TENREC_OK)
        fuzz_expect(memchr(l.host, '\0', sizeof l.host) && memchr(l.file, '\0', sizeof l.file));
}

static void fuzz_variables(struct text *t)
{
    for (size_t i = 0; i < t->len; i++)
        if (t->at[i] == '\n')
            t->at[i] = '\0';
    variables = t;
    read_variables();
    variables = NULL;
}

static void fuzz_nodes(struct text *t)
{
    char host[16];

    memset(host, 'x', sizeof host);
    if (slurm_first_host(t->at, host, sizeof host))
        fuzz_expect(*host && memchr(host, '\0', sizeof host));
    for (long node = 0; node < 3; node++)
        fuzz_expect(slurm_count_at(t->at, node) >= -1);
}

static void fuzz_address(struct text *t)
{
    char host[64];
    tenrec_error err;
    uint16_t port;
    int64_t n;

    if (resolve_split(t->at, host, sizeof host, &port, &err) == TENREC_OK)
        fuzz_expect(memchr(host, '\0', sizeof host) != NULL);
    if (launch_number("number", t->at, -5, 5, &n, &err) == TENREC_OK)
        fuzz_expect(n >= -5 && n <= 5);
}

static void read_store(const struct text *t, const struct store_url_form *form)
{
    struct store_url u;
    tenrec_error err;

    if (store_url_read(t->at, form, &u, &err) != TENREC_OK)
        return;
    fuzz_expect(u.n_hosts >= 1 && u.n_hosts <= form->most_hosts &&
                memchr(u.password, '\0', sizeof u.password) &&
                memchr(u.prefix, '\0', sizeof u.prefix));
    for (uint32_t i = 0; i < u.n_hosts; i++)
        fuzz_expect(*u.at[i].host && memchr(u.at[i].host, '\0', sizeof u.at[i].host));
}

static void fuzz_store(struct text *t)
{
    static const struct store_url_form one = { "redis", 6379, 1 },
                                       several = { "etcd", 2379, STORE_HOSTS_MAX };

    read_store(t, &one);
    read_store(t, &several);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static void (*const readers[])(struct text *) = { fuzz_variables, fuzz_nodes, fuzz_address,
                                                      fuzz_store };
    struct text t;

    if (len == 0)
        return 0;
    t = (struct text){ malloc(len), len - 1 };
    fuzz_expect(t.at != NULL);
    memcpy(t.at, data + 1, len - 1);
    t.at[len - 1] = '\0';
    readers[data[0] % (sizeof readers / sizeof readers[0])](&t);
    free(t.at);
    return 0;
}
