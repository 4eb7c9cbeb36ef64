/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - builds nodes from libyaml's events. */
#include "core/config/node.h"

#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct builder {
    yaml_parser_t parser;
    const char *text;
    size_t len;
    const struct position *where;
    struct node *root;
    struct node *open[TREE_MAX_DEPTH]; /* borrowed from root, outermost first */
    size_t depth;
    size_t n_nodes;
    char *key; /* of the innermost map, its value is next */
    struct position key_where;
    bool done; /* the document has ended */
};

static struct position position_at(const struct builder *b, size_t line, size_t column)
{
    struct position where = *b->where;

    if (where.kind == POSITION_FILE) {
        where.line = (unsigned)line + 1;
        where.column = (unsigned)column + 1;
    }
    return where;
}

static struct position position_of(const struct builder *b, const yaml_mark_t *mark)
{
    return position_at(b, mark->line, mark->column);
}

/* libyaml reports only an offset for a byte that is not UTF-8. */
static struct position position_of_offset(const struct builder *b, size_t offset)
{
    size_t line = 0, column = 0;

    for (size_t i = 0; i < offset && i < b->len; i++) {
        if (b->text[i] == '\n') {
            line++;
            column = 0;
        } else if (((unsigned char)b->text[i] & 0xc0) != 0x80) {
            column++;
        }
    }
    return position_at(b, line, column);
}

static tenrec_status parser_fail(const struct builder *b, tenrec_error *err)
{
    const yaml_parser_t *p = &b->parser;
    const char *problem = p->problem ? p->problem : "cannot be read";
    struct position where;

    if (p->error == YAML_MEMORY_ERROR)
        return memory_fail(err);
    if (p->error == YAML_READER_ERROR) {
        where = position_of_offset(b, p->problem_offset);
        return position_fail(err, TENREC_ECONFIG, &where, "not valid UTF-8 text: %s", problem);
    }
    where = position_of(b, &p->problem_mark);
    if (p->context)
        return position_fail(err, TENREC_ECONFIG, &where, "not valid YAML: %s, %s", p->context,
                             problem);
    return position_fail(err, TENREC_ECONFIG, &where, "not valid YAML: %s", problem);
}

static struct node *tree_innermost(const struct builder *b)
{
    return b->depth ? b->open[b->depth - 1] : NULL;
}

/* Takes `node` into the tree; a list or map becomes the innermost open node. */
static tenrec_status tree_put(struct builder *b, struct node *node, tenrec_error *err)
{
    struct node *parent = tree_innermost(b);
    tenrec_status st = TENREC_OK;

    if (!node)
        return memory_fail(err);
    if (parent && parent->kind == NODE_MAP) {
        node->key = b->key;
        node->key_where = b->key_where;
        b->key = NULL;
    }
    if (parent)
        st = node_add(parent, node);
    else
        b->root = node;
    if (st != TENREC_OK)
        return memory_fail(err);
    if (node->kind != NODE_SCALAR)
        b->open[b->depth++] = node;
    return TENREC_OK;
}

/* Checks what no node may have, before the node is made. */
static tenrec_status tree_admit(struct builder *b, const struct position *where,
                                const yaml_char_t *anchor, const yaml_char_t *tag, bool collection,
                                tenrec_error *err)
{
    const struct node *parent = tree_innermost(b);
    bool is_key = parent && parent->kind == NODE_MAP && !b->key;

    if (anchor)
        return position_fail(err, TENREC_ECONFIG, where,
                             "anchors are not supported, found '&%s'; write the value out", anchor);
    if (tag)
        return position_fail(err, TENREC_ECONFIG, where, "tags are not supported, found '%s'", tag);
    if (is_key && collection)
        return position_fail(err, TENREC_ECONFIG, where, "a key is text, not a list or map");
    if (collection && b->depth == TREE_MAX_DEPTH)
        return position_fail(err, TENREC_ECONFIG, where, "nested deeper than %d levels",
                             TREE_MAX_DEPTH);
    if (++b->n_nodes > TREE_MAX_NODES)
        return position_fail(err, TENREC_ECONFIG, where, "more than %d values", TREE_MAX_NODES);
    return TENREC_OK;
}

static tenrec_status tree_add_key(struct builder *b, const yaml_event_t *event,
                                  const struct position *where, tenrec_error *err)
{
    const char *text = (const char *)event->data.scalar.value;
    const struct node *former = node_get(tree_innermost(b), text);
    char buf[POSITION_TEXT_MAX];

    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(text, "<<") == 0)
        return position_fail(err, TENREC_ECONFIG, where,
                             "merge keys ('<<') are not supported; write the values out");
    if (*text == '\0')
        return position_fail(err, TENREC_ECONFIG, where, "a key is empty");
    if (former)
        return position_fail(err, TENREC_ECONFIG, where, "duplicate key '%s' (first at %s)", text,
                             position_text(&former->key_where, buf));
    b->key = memory_text(text);
    b->key_where = *where;
    return b->key ? TENREC_OK : memory_fail(err);
}

static tenrec_status tree_add_scalar(struct builder *b, const yaml_event_t *event,
                                     tenrec_error *err)
{
    const char *text = (const char *)event->data.scalar.value;
    const struct node *parent = tree_innermost(b);
    struct position where = position_of(b, &event->start_mark);
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    tenrec_status st =
        tree_admit(b, &where, event->data.scalar.anchor, event->data.scalar.tag, false, err);

    if (st != TENREC_OK)
        return st;
    if (memchr(text, '\0', event->data.scalar.length))
        return position_fail(err, TENREC_ECONFIG, &where, "text holds a NUL character");
    if (parent && parent->kind == NODE_MAP && !b->key)
        return tree_add_key(b, event, &where, err);
    return tree_put(b, node_scalar(text, plain ? NODE_PLAIN : NODE_QUOTED, &where), err);
}

static tenrec_status tree_add_collection(struct builder *b, const yaml_event_t *event,
                                         enum node_kind kind, tenrec_error *err)
{
    struct position where = position_of(b, &event->start_mark);
    bool list = kind == NODE_LIST;
    const yaml_char_t *anchor =
        list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor;
    const yaml_char_t *tag = list ? event->data.sequence_start.tag : event->data.mapping_start.tag;
    tenrec_status st = tree_admit(b, &where, anchor, tag, true, err);

    return st == TENREC_OK ? tree_put(b, node_new(kind, &where), err) : st;
}

static tenrec_status tree_add_event(struct builder *b, const yaml_event_t *event, tenrec_error *err)
{
    struct position where = position_of(b, &event->start_mark);

    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->done)
            return position_fail(err, TENREC_ECONFIG, &where,
                                 "a second document begins; one file holds one document");
        return TENREC_OK;
    case YAML_DOCUMENT_END_EVENT:
        b->done = true;
        return TENREC_OK;
    case YAML_ALIAS_EVENT:
        return position_fail(err, TENREC_ECONFIG, &where,
                             "aliases are not supported, found '*%s'; write the value out",
                             event->data.alias.anchor);
    case YAML_SCALAR_EVENT:
        return tree_add_scalar(b, event, err);
    case YAML_SEQUENCE_START_EVENT:
        return tree_add_collection(b, event, NODE_LIST, err);
    case YAML_MAPPING_START_EVENT:
        return tree_add_collection(b, event, NODE_MAP, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return TENREC_OK;
    default:
        return TENREC_OK;
    }
}

tenrec_status tree_parse(const char *text, size_t len, const struct position *where,
                         struct node **ret, tenrec_error *err)
{
    static const char mark[] = "\xef\xbb\xbf"; /* a byte order mark, which some editors write */
    bool marked = len >= 3 && memcmp(text, mark, 3) == 0;
    struct builder b = {
        .text = marked ? text + 3 : text,
        .len = marked ? len - 3 : len,
        .where = where,
    };
    tenrec_status st = TENREC_OK;
    bool end = false;

    if (len > TREE_MAX_BYTES) {
        struct position start = position_at(&b, 0, 0);
        return position_fail(err, TENREC_ECONFIG, &start, "larger than %zu bytes", TREE_MAX_BYTES);
    }
    if (b.len == 0) {
        *ret = NULL;
        return TENREC_OK;
    }
    if (!yaml_parser_initialize(&b.parser))
        return memory_fail(err);
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)b.text, b.len);
    while (st == TENREC_OK && !end) {
        yaml_event_t event;
        if (!yaml_parser_parse(&b.parser, &event)) {
            st = parser_fail(&b, err);
            break;
        }
        end = event.type == YAML_STREAM_END_EVENT;
        st = tree_add_event(&b, &event, err);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&b.parser);
    free(b.key);
    if (st != TENREC_OK) {
        node_drop(b.root);
        return st;
    }
    *ret = b.root;
    return TENREC_OK;
}
