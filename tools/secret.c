/* SPDX-License-Identifier: Apache-2.0 */
/* secret.c - `tenrec secret new`: makes the file of a group secret. */
#include "security/secret/secret.h"
#include "tool.h"

#include <getopt.h>
#include <string.h>

static int secret_main(const struct tool *self, int argc, char **argv)
{
    struct secret *secret = NULL;
    tenrec_error err;
    tenrec_status st;
    int c = tool_options(self, argc, argv, false, NULL, 0);

    if (c != TOOL_GO_ON)
        return c;
    if (argc - optind != 2 || strcmp(argv[optind], "new") != 0)
        return tool_misuse(self, "expected 'new FILE'");
    st = secret_draw(&secret, &err);
    if (st == TENREC_OK)
        st = secret_write_file(secret, argv[optind + 1], &err);
    secret_drop(secret);
    return st ? tool_fail(self, "%s", err.text) : TOOL_OK;
}

const struct tool tool_secret = {
    .name = "secret",
    .usage = "new FILE",
    .summary = "make the secret of a group",
    .help =
        "Writes 32 random bytes to a new file that only its owner can read, for --secret-file of\n"
        "the other commands, TENREC_SECRET_FILE, and 'security: { secret_file: FILE }'. Each\n"
        "host of the group needs a copy. A process without the secret can neither use the store\n"
        "of the group nor call its workers. 'tenrec run' makes one of its own for a group on one\n"
        "host.",
    .main = secret_main,
};
