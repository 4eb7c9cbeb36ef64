/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that is wrong in one way, chosen by -D. All that it has in code
 * aborts: the core must refuse it before it calls anything. */
#include <stdlib.h>
#include <tenrec/store_plugin.h>
#include <unistd.h>

#ifndef MAGIC
#define MAGIC TENREC_PLUGIN_MAGIC
#endif
#ifndef MAJOR
#define MAJOR TENREC_ABI_MAJOR
#endif
#ifndef MINOR
#define MINOR TENREC_ABI_MINOR
#endif
#ifndef SIZE
#define SIZE sizeof(struct tenrec_plugin)
#endif
#ifndef KIND
#define KIND TENREC_PLUGIN_BACKEND
#endif
#ifndef NAME
#define NAME "fixture"
#endif
#ifndef SUMMARY
#define SUMMARY "is wrong in one way"
#endif
#ifndef FIRST
#define FIRST GOOD(a)
#endif
#ifndef SECOND
#define SECOND GOOD(b)
#endif
#ifndef OPTION_SIZE
#define OPTION_SIZE sizeof(struct tenrec_option)
#endif
#ifndef TABLE
#define TABLE options
#endif
#ifndef N_OPTIONS
#define N_OPTIONS 2
#endif

struct values {
    int64_t a, b;
};

#define GOOD(k)                                                                                    \
    .key = #k, .type = TENREC_OPT_INT, .offset = offsetof(struct values, k), .def = "1",           \
    .help = "a number"

static const struct tenrec_option options[] __attribute__((unused)) = { { FIRST }, { SECOND } };

#ifdef STRAY
__attribute__((visibility("default"))) void helper_of_mine(void);
void helper_of_mine(void)
{
}
#endif

#ifndef NO_PLUGIN
const struct tenrec_plugin tenrec_plugin = {
    .magic = MAGIC,
    .abi_major = MAJOR,
    .abi_minor = MINOR,
    .size = SIZE,
    .kind = KIND,
    .flags = TENREC_PLUGIN_UNLOADABLE,
    .name = NAME,
    .version = "1",
    .summary = SUMMARY,
    .options = TABLE,
    .n_options = N_OPTIONS,
    .option_size = OPTION_SIZE,
    .options_size = sizeof(struct values),
};
#endif

#ifndef NO_CONSTRUCT
tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
#if defined(HANGS)
    while (getppid() > 1)
        pause();
    return TENREC_EINVAL;
#elif defined(INIT_STORE) || defined(GOOD_CONSTRUCT)
    return TENREC_OK;
#else
    abort();
#endif
}
#endif

/* A store of which nothing can be asked. */
#ifdef INIT_STORE
static void fixture_close(struct tenrec_plugin_store *self, uint64_t deadline_ns)
{
    (void)self, (void)deadline_ns;
}

tenrec_status tenrec_init_store(const struct tenrec_store_init *in,
                                struct tenrec_plugin_store *self, tenrec_error *err)
{
    static const struct tenrec_store_ops ops = { .size = sizeof ops, .close = fixture_close };

    (void)in, (void)err;
    self->ops = &ops;
    return TENREC_OK;
}
#endif

#ifndef NO_INIT
tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    (void)in, (void)self, (void)err;
    abort();
}
#endif
