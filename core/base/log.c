/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - one level and one callback for the process. TENREC_LOG and TENREC_LOG_FILE
 * are read at first use. */
#include "core/base/log.h"

#include "core/base/clock.h"
#include "core/base/forks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const level_names[] = {
    [TENREC_LOG_ERROR] = "error", [TENREC_LOG_WARN] = "warn",   [TENREC_LOG_INFO] = "info",
    [TENREC_LOG_DEBUG] = "debug", [TENREC_LOG_TRACE] = "trace",
};
#define N_LEVELS (sizeof level_names / sizeof level_names[0])

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int current_level = TENREC_LOG_WARN;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below */
static tenrec_log_fn *callback;
static void *callback_arg;
static struct log_limit limit;
static int file = STDERR_FILENO;

TENREC_PRINTF(1, 2)
static void log_complain(const char *fmt, ...)
{
    char line[512];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    log_sink_write(STDERR_FILENO, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

/* O_NONBLOCK: a FIFO without a reader fails to open, one with a slow reader loses lines. */
static void open_file(const char *path)
{
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = open(path, flags, 0666);

    if (fd >= 0)
        file = fd;
    else
        log_complain("tenrec: TENREC_LOG_FILE: cannot open '%s' (%s), writing to stderr\n", path,
                     strerror(errno));
}

/* In the child of a fork: another thread of the parent may have held the lock. */
static void renew_lock(void)
{
    pthread_mutex_init(&lock, NULL);
}

static struct fork_hook fork_hook = { .child = renew_lock };

bool log_level_find(const char *name, enum tenrec_log_level *ret)
{
    size_t i = 0;

    while (i < N_LEVELS && strcmp(level_names[i], name) != 0)
        i++;
    *ret = (enum tenrec_log_level)i;
    return i < N_LEVELS;
}

static void read_environment(void)
{
    const char *name = secure_getenv("TENREC_LOG");
    const char *path = secure_getenv("TENREC_LOG_FILE");
    enum tenrec_log_level level;

    forks_follow(&fork_hook);
    if (path && *path)
        open_file(path);
    if (!name || !*name)
        return;
    if (log_level_find(name, &level))
        atomic_store(&current_level, (int)level);
    else
        log_complain("tenrec: TENREC_LOG: '%s' is none of error, warn, info, debug, trace\n", name);
}

void tenrec_log_set_callback(tenrec_log_fn *fn, void *arg)
{
    pthread_once(&once, read_environment);
    pthread_mutex_lock(&lock);
    callback = fn;
    callback_arg = arg;
    pthread_mutex_unlock(&lock);
}

enum tenrec_log_level tenrec_log_set_level(enum tenrec_log_level level)
{
    pthread_once(&once, read_environment);
    return (enum tenrec_log_level)atomic_exchange(&current_level, (int)level);
}

bool log_enabled(enum tenrec_log_level level)
{
    pthread_once(&once, read_environment);
    return (int)level <= atomic_load_explicit(&current_level, memory_order_relaxed);
}

/* Passes one line to the callback, or writes it to the file. */
static void print_line(const struct log_record *r)
{
    char text[sizeof r->text + 64], line[sizeof r->part + sizeof text + 64];
    const uint32_t forks = forks_seen;
    tenrec_log_fn *fn;
    void *arg;
    int n;

    pthread_mutex_lock(&lock);
    fn = callback;
    arg = callback_arg;
    pthread_mutex_unlock(&lock);
    if (r->left_out > 0)
        snprintf(text, sizeof text, "%s (and %llu more lines like it)", r->text,
                 (unsigned long long)r->left_out);
    else
        snprintf(text, sizeof text, "%s", r->text);
    n = snprintf(line, sizeof line, "tenrec: %s: %s: %s\n", level_names[r->level], r->part, text);
    if (fn) {
        fn(arg, r->level, r->part, text);
        forks_check(forks, "the callback of the log");
    } else {
        log_sink_write(file, line, (size_t)n);
    }
}

static bool log_pop_count(bool all, struct log_record *ret)
{
    bool any;

    pthread_mutex_lock(&lock);
    any = log_limit_take(&limit, all, clock_now_ns(), ret);
    pthread_mutex_unlock(&lock);
    return any;
}

/* Returns true if the line may be printed. Lines of info and below were asked for: no limit. */
static bool log_admit(const char *format, struct log_record *r)
{
    bool may;

    if (r->level > TENREC_LOG_WARN)
        return true;
    pthread_mutex_lock(&lock);
    may = log_limit_admit(&limit, format, r, clock_now_ns());
    pthread_mutex_unlock(&lock);
    return may;
}

void log_vline(enum tenrec_log_level level, const char *part, const char *fmt, va_list ap)
{
    struct log_record r = { .level = level }, other;
    char raw[sizeof r.text];

    if (!log_enabled(level))
        return;
    vsnprintf(raw, sizeof raw, fmt, ap);
    tenrec_text_escape(r.text, sizeof r.text, raw, "");
    tenrec_text_escape(r.part, sizeof r.part, part, "");
    while (log_pop_count(false, &other))
        print_line(&other);
    if (log_admit(fmt, &r))
        print_line(&r);
}

void log_flush(void)
{
    struct log_record r;

    while (log_pop_count(true, &r))
        print_line(&r);
}

void log_line(enum tenrec_log_level level, const char *part, const char *fmt, ...)
{
    va_list ap;

    if (!log_enabled(level))
        return;
    va_start(ap, fmt);
    log_vline(level, part, fmt, ap);
    va_end(ap);
}
