/* SPDX-License-Identifier: Apache-2.0 */
/* section.h - the two sections of a configuration whose entries name a plugin. */
#ifndef TENREC_YAML_SECTION_H
#define TENREC_YAML_SECTION_H

enum config_section { SECTION_BACKENDS, SECTION_STORES };

/* "backends": the key in the file. */
static inline const char *section_key(enum config_section s)
{
    return s == SECTION_STORES ? "stores" : "backends";
}

/* "backend": the word for an entry. */
static inline const char *section_word(enum config_section s)
{
    return s == SECTION_STORES ? "store" : "backend";
}

#endif
