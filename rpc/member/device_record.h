/* SPDX-License-Identifier: Apache-2.0 */
/* device_record.h - the devices of a worker, encoded for the other workers. No locks. */
#ifndef TENREC_MEMBER_DEVICE_RECORD_H
#define TENREC_MEMBER_DEVICE_RECORD_H

#include "core/tensor/device_map.h"
#include "group/store/store.h"

/* Sets ret->data to NULL if out of memory. */
void device_record_pack(const struct device_row *r, struct store_value *ret);

/* An empty record is of a worker that names no devices.
 *
 * ret      the caller frees it with device_row_free
 * errors   EPROTOCOL, ENOMEM */
tenrec_status device_record_unpack(const void *data, size_t len, struct device_row *ret,
                                   tenrec_error *err);

#endif
