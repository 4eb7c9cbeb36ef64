/* SPDX-License-Identifier: Apache-2.0 */
/* A program outside of the tree: built with what pkg-config says, it loads a
 * plugin that the library has never seen. */
#include <stdio.h>
#include <tenrec/backend.h>

int main(int argc, char **argv)
{
    tenrec_error err;

    if (argc != 2)
        return 2;
    if (tenrec_plugin_load(argv[1], &err) != TENREC_OK) {
        fprintf(stderr, "program: %s: %s\n", tenrec_status_name(err.code), err.text);
        return 1;
    }
    printf("%s is %s\n", argv[1],
           tenrec_backend_registered(argv[1]) ? "registered" : "not registered");
    return 0;
}
