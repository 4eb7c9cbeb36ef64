/* SPDX-License-Identifier: Apache-2.0 */
/* json_test.c - what is written, as another library reads it. */
#include "core/base/json.h"

#include "../testing.h"

#include <jansson.h>
#include <stdlib.h>

static char *text;
static size_t len;
static struct json json;

static void open_file(void)
{
    json = (struct json){ .to = open_memstream(&text, &len) };
    assert_non_null(json.to);
}

static void drop_text(void)
{
    free(text);
    text = NULL;
}

/* Closes the file, and reads its text. */
static json_t *read_back(void)
{
    json_error_t why;
    json_t *root;

    assert_int_equal(fclose(json.to), 0);
    root = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        fail_msg("%s in %s", why.text, text);
    return root;
}

TEST_WITH(json_separates_values_when_objects_and_arrays_are_nested, open_file, drop_text)
{
    json_t *root, *list;

    json_begin(&json, NULL, '{');
    json_begin(&json, "empty", '[');
    json_end(&json, '[');
    json_begin(&json, "list", '[');
    for (int i = 0; i < 3; i++) {
        json_begin(&json, NULL, '{');
        json_int(&json, "i", i);
        json_int(&json, "least", INT64_MIN);
        json_end(&json, '{');
    }
    json_end(&json, '[');
    json_micros(&json, "us", 12034);
    json_textf(&json, "text", "%d%%", 7);
    json_end(&json, '{');
    root = read_back();
    list = json_object_get(root, "list");
    assert_int_equal(json_array_size(json_object_get(root, "empty")), 0);
    assert_int_equal(json_array_size(list), 3);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 2), "i")), 2);
    assert_true(json_integer_value(json_object_get(json_array_get(list, 0), "least")) == INT64_MIN);
    assert_true(json_real_value(json_object_get(root, "us")) == 12.034);
    assert_string_equal(json_string_value(json_object_get(root, "text")), "7%");
    json_decref(root);
}

TEST_WITH(json_keeps_texts_when_they_have_marks_and_malformed_bytes, open_file, drop_text)
{
    static const char *const row[][2] = {
        { "", "" },
        { "quote\"back\\slash", "quote\"back\\slash" },
        { "tab\tline\n\x01", "tab\tline\n\x01" },
        { "h\xc3\xa9", "h\xc3\xa9" },
        { "half\xc3", "half\xef\xbf\xbd" },
        { "\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd" },
    };
    enum { N = sizeof row / sizeof *row };
    json_t *root;

    json_begin(&json, NULL, '[');
    for (size_t i = 0; i < N; i++)
        json_text(&json, NULL, row[i][0]);
    json_end(&json, '[');
    root = read_back();
    assert_int_equal(json_array_size(root), N);
    for (size_t i = 0; i < N; i++)
        assert_string_equal(json_string_value(json_array_get(root, i)), row[i][1]);
    json_decref(root);
}

TEST_WITH(json_cuts_a_formatted_text_when_it_is_long, open_file, drop_text)
{
    json_t *root;

    json_begin(&json, NULL, '[');
    json_textf(&json, NULL, "%0400d", 1);
    json_end(&json, '[');
    root = read_back();
    assert_int_equal(json_string_length(json_array_get(root, 0)), 299);
    json_decref(root);
}

int main(void)
{
    return testing_run(NULL, NULL);
}
