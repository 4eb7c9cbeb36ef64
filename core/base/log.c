/* log.c - one level and one callback for the process: with the registry the
 * only mutable globals. TENREC_LOG and TENREC_LOG_FILE are read at first use. */
#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static const char *const level_names[] = {
    [TENREC_LOG_ERROR] = "error", [TENREC_LOG_WARN] = "warn",   [TENREC_LOG_INFO] = "info",
    [TENREC_LOG_DEBUG] = "debug", [TENREC_LOG_TRACE] = "trace",
};
#define N_LEVELS (sizeof level_names / sizeof level_names[0])

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int current_level = TENREC_LOG_WARN;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static tenrec_log_fn *callback;
static void *callback_arg;
static FILE *file; /* NULL: stderr */

/* In the child of a fork: another thread of the parent may have had it. */
static void renew_lock(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void read_environment(void)
{
    const char *level = secure_getenv("TENREC_LOG");
    const char *path = secure_getenv("TENREC_LOG_FILE");
    size_t i = 0;

    pthread_atfork(NULL, NULL, renew_lock);
    if (path && *path && !(file = fopen(path, "ae")))
        fprintf(stderr, "tenrec: TENREC_LOG_FILE: cannot open '%s', writing to stderr\n", path);
    if (!level || !*level)
        return;
    while (i < N_LEVELS && strcmp(level_names[i], level) != 0)
        i++;
    if (i < N_LEVELS)
        atomic_store(&current_level, (int)i);
    else
        fprintf(stderr, "tenrec: TENREC_LOG: '%s' is none of error, warn, info, debug, trace\n",
                level);
}

void tenrec_set_log_callback(tenrec_log_fn *fn, void *arg)
{
    pthread_once(&once, read_environment);
    pthread_mutex_lock(&lock);
    callback = fn;
    callback_arg = arg;
    pthread_mutex_unlock(&lock);
}

void tenrec_set_log_level(enum tenrec_log_level level)
{
    pthread_once(&once, read_environment);
    atomic_store(&current_level, (int)level);
}

enum tenrec_log_level tenrec_get_log_level(void)
{
    pthread_once(&once, read_environment);
    return (enum tenrec_log_level)atomic_load(&current_level);
}

bool log_enabled(enum tenrec_log_level level)
{
    pthread_once(&once, read_environment);
    return (int)level <= atomic_load_explicit(&current_level, memory_order_relaxed);
}

void log_vline(enum tenrec_log_level level, const char *part, const char *fmt, va_list ap)
{
    char text[1024];
    tenrec_log_fn *fn;
    void *arg;

    if (!log_enabled(level))
        return;
    vsnprintf(text, sizeof text, fmt, ap);
    pthread_mutex_lock(&lock);
    fn = callback;
    arg = callback_arg;
    pthread_mutex_unlock(&lock);
    if (fn)
        fn(arg, level, part, text);
    else
        fprintf(file ? file : stderr, "tenrec: %s: %s: %s\n", level_names[level], part, text);
    if (!fn && file)
        fflush(file);
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
