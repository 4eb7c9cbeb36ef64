/* SPDX-License-Identifier: Apache-2.0 */
/* mapped_file.h - a file that this process has mapped, and its build id: which build of it runs. */
#ifndef TENREC_PLUGIN_MAPPED_FILE_H
#define TENREC_PLUGIN_MAPPED_FILE_H

enum { BUILD_ID_MAX = 129 };

struct mapped_file {
    const char *path;            /* borrowed while it is mapped; "" for the program itself */
    char build_id[BUILD_ID_MAX]; /* in hexadecimal digits, as `readelf -n` prints it; "": none */
};

/* Finds the file by an address inside of it. */
void mapped_file_find(const void *inside, struct mapped_file *ret);

#endif
