/* SPDX-License-Identifier: Apache-2.0 */
#include "top/screen.h"

#include "top/paint.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/log.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

enum { LOOK_MS = 100, STOP_MS = 300 };

/* ---- the terminal ---------------------------------------------------------------- */

static volatile sig_atomic_t screen_signal;
static struct termios screen_before;
static char screen_restore[256]; /* what curses writes at its end */

static void screen_on_signal(int sig)
{
    screen_signal = sig;
}

/* A defect of ours must not leave a broken terminal, either. */
static void screen_on_crash(int sig)
{
    (void)!write(STDOUT_FILENO, screen_restore, strlen(screen_restore));
    tcsetattr(STDOUT_FILENO, TCSANOW, &screen_before);
    signal(sig, SIG_DFL);
    raise(sig);
}

static void screen_add_restore(const char *capability)
{
    const size_t n = strlen(screen_restore);

    if (capability && !strstr(capability, "$<"))
        snprintf(screen_restore + n, sizeof screen_restore - n, "%s", capability);
}

static void screen_set_signals(void)
{
    static const int end[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT },
                     crash[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
    struct sigaction act = { .sa_handler = screen_on_signal };

    screen_add_restore(exit_attribute_mode);
    screen_add_restore(keypad_local);
    screen_add_restore(cursor_normal);
    screen_add_restore(exit_ca_mode);
    for (size_t i = 0; i < sizeof end / sizeof end[0]; i++)
        sigaction(end[i], &act, NULL);
    act.sa_handler = screen_on_crash;
    act.sa_flags = (int)SA_RESETHAND;
    for (size_t i = 0; i < sizeof crash / sizeof crash[0]; i++)
        sigaction(crash[i], &act, NULL);
}

static SCREEN *screen_open(void)
{
    SCREEN *screen;

    setlocale(LC_CTYPE, "");
    tcgetattr(STDOUT_FILENO, &screen_before);
    screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return NULL;
    screen_set_signals();
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    set_escdelay(50);
    curs_set(0);
    timeout(LOOK_MS);
    paint_prepare();
    return screen;
}

/* Lines of the log would break the screen, which shows the same errors. */
static void screen_ignore_log(void *arg, enum tenrec_log_level level, const char *part,
                              const char *text)
{
    (void)arg, (void)level, (void)part, (void)text;
}

/* ---- the keys --------------------------------------------------------------------- */

static int screen_code(int key)
{
    static const struct {
        int key;
        enum keys_code code;
    } known[] = {
        { ERR, KEYS_NONE },
        { KEY_UP, KEYS_UP },
        { KEY_DOWN, KEYS_DOWN },
        { KEY_PPAGE, KEYS_PAGE_UP },
        { KEY_NPAGE, KEYS_PAGE_DOWN },
        { KEY_HOME, KEYS_FIRST },
        { KEY_END, KEYS_LAST },
        { KEY_LEFT, KEYS_LEFT },
        { KEY_RIGHT, KEYS_RIGHT },
        { '\n', KEYS_ENTER },
        { '\r', KEYS_ENTER },
        { KEY_ENTER, KEYS_ENTER },
        { 27, KEYS_ESCAPE },
        { KEY_BACKSPACE, KEYS_ESCAPE },
        { KEY_RESIZE, KEYS_NONE },
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].key == key)
            return known[i].code;
    return key;
}

/* A terminal that is gone gives no keys, at once. */
static bool screen_is_gone(void)
{
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

    return poll(&in, 1, 0) > 0 && (in.revents & (POLLHUP | POLLERR | POLLNVAL));
}

/* Draws once and executes a key. Returns false to quit. */
static bool screen_step(struct feed *f, struct keys_state *k, int key)
{
    enum keys_order order;
    struct view v;
    bool go_on;

    pthread_mutex_lock(&f->lock);
    paint_rows(f, k, &v);
    order = keys_take(k, screen_code(key), &v.table, LINES - PAINT_ABOVE);
    if (key != ERR) {
        *f->note = '\0';
        view_finish(&v);
        paint_rows(f, k, &v);
    }
    paint(f, k, &v);
    view_finish(&v);
    go_on = order != KEYS_QUIT && !f->failed;
    pthread_mutex_unlock(&f->lock);
    if (order == KEYS_TIME)
        feed_time(f);
    return go_on;
}

static void screen_loop(struct feed *f, const char *sort)
{
    struct keys_state k = { .sort = { table_column_find(&view_workers_columns, sort), 0 } };
    int key = ERR;

    while (!screen_signal && screen_step(f, &k, key)) {
        key = getch();
        if (key == ERR && screen_is_gone())
            break;
    }
}

int screen_run(const struct tool *self, struct sampler *s, const char *sort)
{
    SCREEN *screen = screen_open();
    struct feed f;
    tenrec_error err;
    tenrec_status st;
    bool ended = true;

    if (!screen)
        return tool_fail(self, "terminal type '%s' is unknown or cannot show a screen (TERM)",
                         secure_getenv("TERM") ? secure_getenv("TERM") : "");
    tenrec_log_set_callback(screen_ignore_log, NULL);
    st = feed_start(&f, s, &err);
    if (st == TENREC_OK) {
        screen_loop(&f, sort);
        endwin(); /* not later: the thread may need its time */
        ended = feed_stop(&f, STOP_MS);
        if (ended && f.failed)
            st = tenrec_fail(&err, f.failed, "out of memory");
    } else {
        endwin();
    }
    tenrec_log_set_callback(NULL, NULL);
    if (st == TENREC_OK && !ended)
        _exit(TOOL_OK); /* at once: the thread waits for a worker or the store */
    delscreen(screen);
    return st == TENREC_OK ? TOOL_OK : tool_fail(self, "%s", err.text);
}
