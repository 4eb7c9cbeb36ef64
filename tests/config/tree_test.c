/* SPDX-License-Identifier: Apache-2.0 */
/* tree_test.c - YAML to nodes with positions, and what is refused where. */
#include "core/config/node.h"

#include "../testing.h"

static const struct position file = {
    .kind = POSITION_FILE, .name = "t.yaml", .line = 1, .column = 1
};

static struct node *parse(const char *text)
{
    struct node *root = NULL;
    tenrec_error err = { 0 };

    if (tree_parse(text, strlen(text), &file, &root, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    return root;
}

static void assert_position(const struct position *where, unsigned line, unsigned column)
{
    assert_string_equal(where->name, "t.yaml");
    assert_int_equal(where->line, line);
    assert_int_equal(where->column, column);
}

TEST(tree_remembers_where_each_value_stands)
{
    struct node *root = parse("a: 1\nb:\n  - x\n  - {c: \"y\"}\n");
    const struct node *b = node_get(root, "b");

    assert_position(&node_get(root, "a")->where, 1, 4);
    assert_position(&node_get(root, "a")->key_where, 1, 1);
    assert_int_equal(b->kind, NODE_LIST);
    assert_int_equal(b->n, 2);
    assert_position(&b->item[0]->where, 3, 5);
    assert_position(&node_get(b->item[1], "c")->where, 4, 9);
    node_drop(root);
}

TEST(tree_counts_columns_in_characters)
{
    struct node *root = parse("{ \xc3\xa4\xe2\x82\xac: x, y: z }");

    assert_position(&node_get(root, "y")->where, 1, 13);
    node_drop(root);
}

TEST(tree_tells_quoted_from_plain)
{
    struct node *root = parse("a: '8'\nb: 8\nc: |\n  text\nd: ~\ne:\nf: ''\n");

    assert_int_equal(node_get(root, "a")->style, NODE_QUOTED);
    assert_int_equal(node_get(root, "b")->style, NODE_PLAIN);
    assert_int_equal(node_get(root, "c")->style, NODE_QUOTED);
    assert_string_equal(node_get(root, "c")->text, "text\n");
    assert_true(node_is_null(node_get(root, "d")));
    assert_true(node_is_null(node_get(root, "e")));
    assert_false(node_is_null(node_get(root, "f")));
    node_drop(root);
}

TEST(tree_keeps_colons_in_flow_style)
{
    struct node *root = parse("{worker1: {cuda:0: cuda:1}, devices: [cuda:0]}");

    assert_string_equal(node_get(node_get(root, "worker1"), "cuda:0")->text, "cuda:1");
    assert_string_equal(node_get(root, "devices")->item[0]->text, "cuda:0");
    node_drop(root);
}

TEST(tree_is_null_when_the_text_is_empty)
{
    static const char *const cases[] = { "", "\n\n", "# only a comment\n" };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_null(parse(cases[i]));
}

TEST(tree_takes_a_byte_order_mark_and_crlf)
{
    struct node *root = parse("\xef\xbb\xbf"
                              "a: 1\r\nb: 2\r\n");

    assert_string_equal(node_get(root, "a")->text, "1");
    assert_string_equal(node_get(root, "b")->text, "2");
    node_drop(root);
}

TEST(tree_refuses_with_the_position)
{
    static const char *const cases[][2] = {
        { "a: 1\nb: 2\na: 3\n", "t.yaml:3:1: duplicate key 'a' (first at t.yaml:1:1)" },
        { "{a: 1, \"a\": 2}", "t.yaml:1:8: duplicate key 'a' (first at t.yaml:1:2)" },
        { "a: &x 1\n", "t.yaml:1:4: anchors are not supported, found '&x'; write the value out" },
        { "a: &x [1]\n", "t.yaml:1:4: anchors are not supported, found '&x'; write the value out" },
        { "a: *x\n", "t.yaml:1:4: aliases are not supported, found '*x'; write the value out" },
        { "*x : 1\n", "t.yaml:1:1: aliases are not supported, found '*x'; write the value out" },
        { "<<: {b: 1}\n", "t.yaml:1:1: merge keys ('<<') are not supported; write the values out" },
        { "a: !!str 1\n", "t.yaml:1:4: tags are not supported, found 'tag:yaml.org,2002:str'" },
        { "a: ! 1\n", "t.yaml:1:4: tags are not supported, found '!'" },
        { "a: !x {}\n", "t.yaml:1:4: tags are not supported, found '!x'" },
        { "a: 1\n---\nb: 2\n",
          "t.yaml:2:1: a second document begins; one file holds one document" },
        { "[a]: 1\n", "t.yaml:1:1: a key is text, not a list or map" },
        { "? {a: 1}\n: 2\n", "t.yaml:1:3: a key is text, not a list or map" },
        { "'': 1\n", "t.yaml:1:1: a key is empty" },
        { "a: \"x\\0y\"\n", "t.yaml:1:4: text holds a NUL character" },
        { "\"a\\0\": 1\n", "t.yaml:1:1: text holds a NUL character" },
        { "a: 1\nb: \xff\n", "t.yaml:2:4: not valid UTF-8 text: invalid leading UTF-8 octet" },
        { "a: \xc3", "t.yaml:1:4: not valid UTF-8 text: incomplete UTF-8 octet sequence" },
        { "a: \x01\n", "t.yaml:1:4: not valid UTF-8 text: control characters are not allowed" },
        { "a: [1, 2\n", "t.yaml:2:1: not valid YAML: while parsing a flow sequence, did not find "
                        "expected ',' or ']'" },
        { "a: b: c\n",
          "t.yaml:1:5: not valid YAML: mapping values are not allowed in this context" },
        { "a:\n\t- b\n", "t.yaml:2:1: not valid YAML: while scanning for the next token, found "
                         "character that cannot start any token" },
        { "a: 'x\n", "t.yaml:2:1: not valid YAML: while scanning a quoted scalar, found unexpected "
                     "end of stream" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct node *root = NULL;
        tenrec_error err = { 0 };
        tenrec_status st = tree_parse(cases[i][0], strlen(cases[i][0]), &file, &root, &err);
        assert_null(root);
        assert_string_equal(err.text, cases[i][1]);
        assert_int_equal(st, TENREC_ECONFIG);
    }
}

TEST(tree_refuses_a_raw_nul_byte)
{
    struct node *root = NULL;
    tenrec_error err = { 0 };

    assert_int_equal(tree_parse("a: x\0y", 6, &file, &root, &err), TENREC_ECONFIG);
    assert_non_null(strstr(err.text, "t.yaml:1:5: "));
}

/* `depth` lists within each other. */
static char *nested(size_t depth)
{
    char *text = calloc(2 * depth + 1, 1);

    assert_non_null(text);
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    return text;
}

TEST(tree_is_bounded_in_depth)
{
    struct node *root = NULL;
    tenrec_error err = { 0 };
    char *text = nested(TREE_MAX_DEPTH);

    node_drop(parse(text));
    free(text);
    text = nested(TREE_MAX_DEPTH + 1);
    assert_int_equal(tree_parse(text, strlen(text), &file, &root, &err), TENREC_ECONFIG);
    assert_string_equal(err.text, "t.yaml:1:33: nested deeper than 32 levels");
    free(text);
    text = nested(100000);
    assert_int_equal(tree_parse(text, strlen(text), &file, &root, &err), TENREC_ECONFIG);
    free(text);
}

TEST(tree_is_bounded_in_values)
{
    size_t n = TREE_MAX_NODES;
    char *text = malloc(2 * n + 3);
    struct node *root = NULL;
    tenrec_error err = { 0 };

    assert_non_null(text);
    text[0] = '[';
    for (size_t i = 0; i < n; i++)
        memcpy(text + 1 + 2 * i, "1,", 2);
    memcpy(text + 1 + 2 * n, "]", 2);
    assert_int_equal(tree_parse(text, strlen(text), &file, &root, &err), TENREC_ECONFIG);
    assert_string_equal(err.text, "t.yaml:1:20000: more than 10000 values");
    free(text);
}

TEST(tree_is_bounded_in_bytes)
{
    char *text = malloc(TREE_MAX_BYTES + 1);
    struct node *root = NULL;
    tenrec_error err = { 0 };

    assert_non_null(text);
    memset(text, '#', TREE_MAX_BYTES + 1);
    assert_int_equal(tree_parse(text, TREE_MAX_BYTES, &file, &root, &err), TENREC_OK);
    assert_int_equal(tree_parse(text, TREE_MAX_BYTES + 1, &file, &root, &err), TENREC_ECONFIG);
    assert_string_equal(err.text, "t.yaml:1:1: larger than 1048576 bytes");
    free(text);
}

TEST(tree_names_the_variable_of_text_that_is_no_file)
{
    const struct position variable = { .kind = POSITION_ENVIRONMENT, .name = "TENREC_X" };
    struct node *root = NULL;
    tenrec_error err = { 0 };

    assert_int_equal(tree_parse("[a", 2, &variable, &root, &err), TENREC_ECONFIG);
    assert_non_null(strstr(err.text, "environment TENREC_X: not valid YAML: "));
}

TEST(node_take_keeps_the_order_of_the_rest)
{
    struct node *root = parse("{a: 1, b: 2, c: 3, d: 4, e: 5}");
    struct node *taken = node_take(root, "b");

    assert_string_equal(taken->text, "2");
    assert_null(node_take(root, "b"));
    assert_int_equal(node_add(root, taken), TENREC_OK);
    assert_int_equal(root->n, 5);
    assert_string_equal(root->item[1]->key, "c");
    assert_string_equal(root->item[4]->key, "b");
    node_drop(root);
}

TEST(node_copy_shares_nothing)
{
    struct node *root = parse("{a: [1, {b: 'x'}]}");
    struct node *copy = node_copy(root);
    const struct node *item;

    node_drop(root);
    item = node_get(copy, "a")->item[1];
    assert_string_equal(node_get(item, "b")->text, "x");
    assert_int_equal(node_get(item, "b")->style, NODE_QUOTED);
    assert_position(&item->where, 1, 9);
    node_drop(copy);
}
