/* SPDX-License-Identifier: Apache-2.0 */
/* torture_test.c - each allocation of the way through config fails once.
 *
 * The linker puts the functions below in front of base/memory.c. */
#include "sample.h"

#include "core/base/memory.h"

void *__real_memory_new(size_t n, size_t size);
void *__real_memory_resize(void *old, size_t n, size_t size);
char *__real_memory_text(const char *text);
char *__real_memory_text_n(const char *text, size_t n);
void *__wrap_memory_new(size_t n, size_t size);
void *__wrap_memory_resize(void *old, size_t n, size_t size);
char *__wrap_memory_text(const char *text);
char *__wrap_memory_text_n(const char *text, size_t n);

static long countdown; /* allocations that still succeed; negative: all do */

static bool fails(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *__wrap_memory_new(size_t n, size_t size)
{
    return fails() ? NULL : __real_memory_new(n, size);
}

void *__wrap_memory_resize(void *old, size_t n, size_t size)
{
    return fails() ? NULL : __real_memory_resize(old, n, size);
}

char *__wrap_memory_text(const char *text)
{
    return fails() ? NULL : __real_memory_text(text);
}

char *__wrap_memory_text_n(const char *text, size_t n)
{
    return fails() ? NULL : __real_memory_text_n(text, n);
}

static const char text[] =
    "worker: {devices: [cpu], device_maps: {w: {cpu: cpu}}}\n"
    "init_method: tcp://me:pw@h:1\nbackend: b\nbackends:\n"
    "  a: {plugin: p, options: {transports: [uv, shm], delays: {CALL: 1}, labels: {a: b},\n"
    "    rules: [{do: drop, on: [CALL], weights: {a: 1}}, {chance: 0.5}]}}\n"
    "  b: {plugin: q, wraps: a}\n";

static void ignore(void *arg, const char *key, const char *value, const char *source)
{
    (void)arg, (void)key, (void)value, (void)source;
}

static tenrec_status whole_way(tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    struct config_layer *layer = NULL, *entry = NULL;
    void *opts = NULL;
    size_t n = 0;
    tenrec_status st = tenrec_config_parse(text, "t.yaml", &config, err);

    if (st == TENREC_OK)
        st = tenrec_config_set(config, "backends.a.options.ports", "[1, 2]", err);
    if (st == TENREC_OK)
        st = tenrec_config_set(config, "backends.c", "{plugin: r, wraps: b}", err);
    if (st == TENREC_OK)
        st = tenrec_config_set(config, "security",
                               "{mode: none, mtls: {names: a}, allow: [{function: f, from: a}]}",
                               err);
    if (st == TENREC_OK)
        st = config_show(config, ignore, NULL, err);
    if (st == TENREC_OK)
        st = config_entries(config, SECTION_BACKENDS, &entry, &n, err);
    if (st == TENREC_OK)
        st = config_layers(config, &layer, &n, err);
    if (st == TENREC_OK)
        st = options_show(&sample, &layer[1], ignore, NULL, err);
    if (st == TENREC_OK)
        st = options_make(&sample, &layer[1], &opts, err);
    options_drop(opts);
    free(layer);
    free(entry);
    tenrec_config_drop(config);
    return st;
}

TEST(config_survives_when_any_allocation_fails)
{
    long n = 0;
    tenrec_status st;

    setenv("TENREC_TRANSPORTS", "^uv", 1);
    setenv("TENREC_BACKENDS__A__LABELS", "x=1,y=2", 1);
    setenv("TENREC_WORKER__DEVICES", "cpu,cuda:0", 1);
    do {
        tenrec_error err = { 0 };
        countdown = n++;
        st = whole_way(&err);
        if (st != TENREC_OK && (st != TENREC_ENOMEM || err.code != TENREC_ENOMEM ||
                                !strstr(err.text, "out of memory")))
            fail_msg("allocation %ld: %d %d '%s'", n, (int)st, (int)err.code, err.text);
    } while (st != TENREC_OK && n < 100000);
    countdown = -1;
    assert_int_equal(st, TENREC_OK);
    assert_true(n > 100);
}

int main(void)
{
    countdown = -1;
    return testing_run(clean_environment, clean_environment);
}
