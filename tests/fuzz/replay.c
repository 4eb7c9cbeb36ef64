/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - runs a fuzz target once on every file of a folder, and once on
 * nothing, where there is no libFuzzer: seeds stay tests. */
#include "fuzz.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data;
    long len;
    int rc = -1;

    if (!f)
        return -1;
    if (fseek(f, 0, SEEK_END) != 0 || (len = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) != 0)
        goto err_close;
    /* Exactly as long as the input, so that a sanitizer sees one byte more. */
    data = malloc(len > 0 ? (size_t)len : 1);
    if (!data)
        goto err_close;
    if (fread(data, 1, (size_t)len, f) == (size_t)len)
        rc = LLVMFuzzerTestOneInput(data, (size_t)len);
    free(data);
err_close:
    fclose(f);
    return rc;
}

int main(int argc, char **argv)
{
    struct dirent **entry = NULL;
    int n = argc == 2 ? scandir(argv[1], &entry, NULL, alphasort) : -1;
    int told = 0, failed = 0;

    if (n < 0) {
        fprintf(stderr, "usage: %s FOLDER-OF-SEEDS\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* a child of a target prints nothing twice */
    failed += LLVMFuzzerTestOneInput((const uint8_t *)"", 0) != 0; /* as libFuzzer does */
    printf("%s %d - empty\n", failed ? "not ok" : "ok", ++told);
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX];

        if (entry[i]->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", argv[1], entry[i]->d_name);
            int bad = replay_file(path) != 0;
            failed += bad;
            printf("%s %d - %s\n", bad ? "not ok" : "ok", ++told, entry[i]->d_name);
        }
        free(entry[i]);
    }
    free(entry);
    printf("1..%d\n", told);
    if (told == 1)
        fprintf(stderr, "no seeds in %s\n", argv[1]);
    return failed || told == 1;
}
