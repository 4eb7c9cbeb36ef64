/* SPDX-License-Identifier: Apache-2.0 */
/* object.h - C objects as values. */
#ifndef TENREC_VALUE_OBJECT_H
#define TENREC_VALUE_OBJECT_H

#include <pthread.h>
#include <tenrec/rref.h>

struct object_type_entry;

/* The types of objects that may arrive. */
struct object_types {
    pthread_mutex_t lock; /* guards the table */
    struct object_type_entry *table;
};

void object_types_init(struct object_types *t);
void object_types_finish(struct object_types *t);

/* Borrows `type`. errors: EINVAL, EEXIST, ENOMEM */
tenrec_status object_types_add(struct object_types *t, const struct tenrec_object_type *type,
                               tenrec_error *err);

/* Makes an object of a received value of type `name`. errors: EUNSUPPORTED (unknown type),
 * and those of decode */
tenrec_status object_decode(struct object_types *t, const char *name,
                            const struct tenrec_value *value, struct tenrec_object **ret,
                            tenrec_error *err);

/* The value that is sent for the object; *ret_type is the name of its type. errors:
 * EUNSUPPORTED, and those of encode */
tenrec_status object_encode(const struct tenrec_object *o, struct tenrec_value **ret,
                            const char **ret_type, tenrec_error *err);

#endif
