/* SPDX-License-Identifier: Apache-2.0 */
/* Executes lines of stdin on a store, and answers each with one line; the
 * other side of torch_store_test.py. A failed call answers "error CODE: text".
 *
 *   serve | open URL [MS] | file PATH N | set K V [MS] | get K [MS] | add K N [MS]
 *   swap K E D [MS] | wait K MS | round K MS | check K | delete K | count | init | close */
#include "core/base/clock.h"
#include "group/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 20000
#define MAX_WORDS 5

static struct tenrec_store *s;
static struct tenrec_store_server *server;
static tenrec_error err;

static const char *empty_for_dash(const char *word)
{
    return strcmp(word, "-") == 0 ? "" : word;
}

static int64_t limit(const char *word)
{
    return word ? atoi(word) : MS;
}

static void answer(tenrec_status st, const char *text)
{
    if (st == TENREC_OK)
        printf("ok %s\n", text);
    else
        printf("error %s: %s\n", tenrec_status_name(st), err.text);
    fflush(stdout);
}

static void answer_number(tenrec_status st, long long n)
{
    char text[32];

    snprintf(text, sizeof text, "%lld", n);
    answer(st, text);
}

static void answer_value(tenrec_status st, void *data)
{
    answer(st, st == TENREC_OK ? data : "");
    if (st == TENREC_OK)
        free(data);
}

static void run(char **w)
{
    void *data = NULL;
    int64_t number = 0;
    bool yes = false;
    uint16_t port = 0;
    tenrec_status st;

    if (strcmp(w[0], "serve") == 0) {
        st = tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err);
        answer_number(st, port);
    } else if (strcmp(w[0], "open") == 0) {
        answer(tenrec_store_open(w[1], limit(w[2]), &s, &err), "");
    } else if (strcmp(w[0], "file") == 0) {
        answer(store_file_open(w[1], (uint32_t)atoi(w[2]), CLOCK_NEVER, &s, &err), "");
    } else if (strcmp(w[0], "set") == 0) {
        answer(tenrec_store_set(s, w[1], w[2], strlen(w[2]), limit(w[3]), &err), "");
    } else if (strcmp(w[0], "get") == 0) {
        st = tenrec_store_get(s, w[1], limit(w[2]), &data, NULL, &err);
        answer_value(st, data);
    } else if (strcmp(w[0], "add") == 0) {
        st = tenrec_store_add(s, w[1], atoi(w[2]), limit(w[3]), &number, &err);
        answer_number(st, number);
    } else if (strcmp(w[0], "swap") == 0) {
        const char *from = empty_for_dash(w[2]), *to = empty_for_dash(w[3]);
        st = tenrec_store_compare_set(s, w[1], from, strlen(from), to, strlen(to), limit(w[4]),
                                      &data, NULL, &err);
        answer_value(st, data);
    } else if (strcmp(w[0], "wait") == 0) {
        answer(tenrec_store_wait(s, (const char *const *)&w[1], 1, atoi(w[2]), &err), "");
    } else if (strcmp(w[0], "round") == 0) {
        answer(store_wait_round(s, (const char *const *)&w[1], 1,
                                clock_deadline_ms((uint64_t)atoi(w[2])), clock_deadline_ms(MS),
                                &yes, &err),
               "");
    } else if (strcmp(w[0], "check") == 0) {
        st = tenrec_store_check(s, (const char *const *)&w[1], 1, MS, &yes, &err);
        answer_number(st, yes);
    } else if (strcmp(w[0], "delete") == 0) {
        st = tenrec_store_delete(s, w[1], MS, &yes, &err);
        answer_number(st, yes);
    } else if (strcmp(w[0], "count") == 0) {
        st = tenrec_store_num_keys(s, MS, &number, &err);
        answer_number(st, number);
    } else if (strcmp(w[0], "init") == 0) {
        answer(store_count_init(s, clock_deadline_ms(MS), &err), "");
    } else {
        tenrec_store_close(s);
        s = NULL;
        answer(TENREC_OK, "");
    }
}

int main(void)
{
    char line[512];

    while (fgets(line, sizeof line, stdin)) {
        char *w[MAX_WORDS + 1] = { NULL }, *save;
        int n = 0;
        line[strcspn(line, "\n")] = '\0';
        for (char *word = strtok_r(line, " ", &save); word && n < MAX_WORDS;
             word = strtok_r(NULL, " ", &save))
            w[n++] = word;
        if (n > 0)
            run(w);
    }
    tenrec_store_close(s);
    tenrec_store_server_drop(server);
    return 0;
}
