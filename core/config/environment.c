/* SPDX-License-Identifier: Apache-2.0 */
/* environment.c - the TENREC_ variables of the process. */
#include "core/config/environment.h"

#include "core/base/log.h"
#include "core/base/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define PREFIX "TENREC_"

static const struct {
    const char *variable, *option;
} short_names[ENVIRONMENT_N_SHORT] = {
    { "TENREC_TRANSPORTS", "transports" },
    { "TENREC_CHANNELS", "channels" },
    { "TENREC_PROGRESS", "progress" },
    { "TENREC_IFNAME", "ifname" },
};

/* One bit per hash of a name that was warned about, so that ten workers of a
 * process do not print the same warning ten times. */
static _Atomic uint64_t warned[4];

static bool environment_copy(struct variable *to, const char *from)
{
    const char *equals = strchr(from, '=');

    to->name = memory_text_n(from, (size_t)(equals - from));
    to->value = memory_text(equals + 1);
    return to->name && to->value;
}

static bool environment_wanted(const char *variable)
{
    const char *equals = strchr(variable, '=');

    return strncmp(variable, PREFIX, strlen(PREFIX)) == 0 && equals && equals[1];
}

tenrec_status environment_read(struct environment *env, tenrec_error *err)
{
    size_t n = 0;

    env->v = NULL;
    env->n = 0;
    if (getauxval(AT_SECURE))
        return TENREC_OK; /* setuid: the variables are those of another user */
    for (char **e = environ; e && *e; e++)
        n += environment_wanted(*e);
    if (n == 0)
        return TENREC_OK;
    env->v = memory_new(n, sizeof *env->v);
    if (!env->v)
        return memory_fail(err);
    for (char **e = environ; *e && env->n < n; e++) {
        if (environment_wanted(*e) && !environment_copy(&env->v[env->n++], *e)) {
            environment_finish(env);
            return memory_fail(err);
        }
    }
    return TENREC_OK;
}

void environment_finish(struct environment *env)
{
    for (size_t i = 0; i < env->n; i++) {
        free(env->v[i].name);
        free(env->v[i].value);
    }
    free(env->v);
    env->v = NULL;
    env->n = 0;
}

const struct variable *environment_get(const struct environment *env, const char *name)
{
    for (size_t i = 0; i < env->n; i++) {
        if (strcmp(env->v[i].name, name) == 0)
            return &env->v[i];
    }
    return NULL;
}

static char environment_upper(char c)
{
    if (c >= 'a' && c <= 'z')
        return (char)(c - 'a' + 'A');
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
}

/* Appends `text` to the variable's name in `buf`, upper-cased and with `_` for each
 * character that is no letter or digit. Cuts a name that is too long. */
static void environment_name_add(char buf[ENVIRONMENT_NAME_MAX], const char *text)
{
    size_t n = strlen(buf);

    while (*text && n + 1 < ENVIRONMENT_NAME_MAX)
        buf[n++] = environment_upper(*text++);
    buf[n] = '\0';
}

void environment_option_name(char buf[ENVIRONMENT_NAME_MAX], enum config_section section,
                             const char *entry, const char *option)
{
    snprintf(buf, ENVIRONMENT_NAME_MAX, "TENREC_");
    environment_name_add(buf, section_key(section));
    environment_name_add(buf, "__");
    environment_name_add(buf, entry);
    environment_name_add(buf, "__");
    environment_name_add(buf, option);
}

void environment_key_name(char buf[ENVIRONMENT_NAME_MAX], const char *top, const char *key)
{
    char part[ENVIRONMENT_NAME_MAX];

    snprintf(buf, ENVIRONMENT_NAME_MAX, "TENREC_");
    for (const char *p = top; *p; p += *p == '.') {
        const size_t len = strcspn(p, ".");
        snprintf(part, sizeof part, "%.*s__", (int)len, p);
        environment_name_add(buf, part);
        p += len;
    }
    environment_name_add(buf, key);
}

const char *environment_short_name(const char *option)
{
    for (size_t i = 0; i < ENVIRONMENT_N_SHORT; i++) {
        if (strcmp(short_names[i].option, option) == 0)
            return short_names[i].variable;
    }
    return NULL;
}

const char *environment_short(size_t i, const char **ret_option)
{
    *ret_option = short_names[i].option;
    return short_names[i].variable;
}

void environment_warn(const char *name, const char *fmt, ...)
{
    char text[256];
    uint64_t hash = 1469598103934665603u;
    va_list ap;

    for (const char *p = name; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    /* Relaxed: the bit orders no other data. */
    if (atomic_fetch_or_explicit(&warned[hash >> 6 & 3], (uint64_t)1 << (hash & 63),
                                 memory_order_relaxed) >>
            (hash & 63) &
        1)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    log_line(TENREC_LOG_WARN, "config", "environment variable %s %s", name, text);
}

struct position environment_where(const struct variable *variable)
{
    return (struct position){ .kind = POSITION_ENVIRONMENT, .name = variable->name };
}
