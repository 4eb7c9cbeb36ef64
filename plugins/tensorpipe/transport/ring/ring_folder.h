/* SPDX-License-Identifier: Apache-2.0 */
/* ring_folder.h - the sockets of rings as files in a folder (option shm_dir).
 *
 * An address is the name of a file, since containers may have the folder at different paths. A
 * peer's domain shows whether it has the same folder. */
#ifndef TENSORPIPE_RING_FOLDER_H
#define TENSORPIPE_RING_FOLDER_H

#include "transport/transport.h"

/* Whether the path may be one. The folder may be on another machine. errors: ECONFIG */
tenrec_status ring_folder_check_path(const char *folder, tenrec_error *err);

/* As the operations of struct transport. errors: ECONFIG, with what to do, if another user could
 * replace the sockets in the folder, or it is none */
tenrec_status ring_folder_listen(const struct tp_options *o, int *ret_fd,
                                 char ret_address[TRANSPORT_TEXT_MAX], tenrec_error *err);
tenrec_status ring_folder_parse(const char *text, size_t len, union transport_address *ret,
                                tenrec_error *err);

/* The path of the socket that ring_folder_parse has read, in a folder that was checked. */
void ring_folder_join(const char *folder, const union transport_address *name,
                      union transport_address *ret);

#endif
