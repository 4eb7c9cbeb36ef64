/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

/* Lets both hashes live for another lease. */
#define RENEW                                                                                      \
    "local function renew()\n"                                                                     \
    "  local lease = tonumber(redis.call('HGET', meta, 'lease') or '0')\n"                         \
    "  if lease > 0 then\n"                                                                        \
    "    redis.call('PEXPIRE', meta, lease)\n"                                                     \
    "    redis.call('PEXPIRE', keys, lease)\n"                                                     \
    "  end\n"                                                                                      \
    "end\n"

/* Checks that the store is the expected one and that its last change is present. */
#define BEGIN                                                                                      \
    "local meta, keys = KEYS[1], KEYS[2]\n"                                                        \
    "local client = 'c:' .. ARGV[2]\n"                                                             \
    "if redis.call('HGET', meta, 'id') ~= ARGV[1] then\n"                                          \
    "  return redis.error_reply('LOST its keys')\n"                                                \
    "end\n"                                                                                        \
    "local last = redis.call('HGET', meta, client) or '0:'\n"                                      \
    "local number, result = string.match(last, '^(%d+):(.*)$')\n"                                  \
    "number = tonumber(number)\n"                                                                  \
    "if number < tonumber(ARGV[3]) then\n"                                                         \
    "  return redis.error_reply('LOST what was changed last')\n"                                   \
    "end\n"

/* Detects a change that was made already. A number below the last is a late
 * duplicate, and no caller waits for its answer. */
#define BEGIN_CHANGE                                                                               \
    BEGIN RENEW "local mine = tonumber(ARGV[4])\n"                                                 \
                "if mine == number then return { '1', result } end\n"                              \
                "if mine < number then return { '0' } end\n"                                       \
                "local function done(what)\n"                                                      \
                "  redis.call('HSET', meta, client, ARGV[4] .. ':' .. what)\n"                     \
                "  renew()\n"                                                                      \
                "  return { '1', what }\n"                                                         \
                "end\n"                                                                            \
                "local function tell(key)\n"                                                       \
                "  redis.call('PUBLISH', keys .. key, '')\n"                                       \
                "end\n"

const char script_open[] =
    "local meta, keys = KEYS[1], KEYS[2]\n" RENEW "redis.call('PUBLISH', keys .. '/', '')\n"
    "redis.call('HLEN', keys)\n"
    "redis.call('HSETNX', meta, 'id', ARGV[5])\n"
    "redis.call('HSETNX', meta, 'lease', ARGV[6])\n"
    "renew()\n"
    "return { redis.call('HGET', meta, 'id'), redis.call('HGET', meta, 'lease') }\n";

/* Publishes before it writes: without the permission to publish, nothing may be
 * written. Scripts are atomic, so no reader sees the order. */
const char script_set[] = BEGIN_CHANGE "tell(ARGV[5])\n"
                                       "redis.call('HSET', keys, ARGV[5], ARGV[6])\n"
                                       "return done('')\n";

/* The sum is read as text: a Lua number has 53 bits. */
const char script_add[] =
    BEGIN_CHANGE "local sum = redis.pcall('HINCRBY', keys, ARGV[5], ARGV[6])\n"
                 "if type(sum) == 'table' and sum.err then return sum end\n"
                 "tell(ARGV[5])\n"
                 "return done(redis.call('HGET', keys, ARGV[5]))\n";

const char script_compare_set[] =
    BEGIN_CHANGE "local now = redis.call('HGET', keys, ARGV[5])\n"
                 "if now == ARGV[6] or (not now and ARGV[6] == '') then\n"
                 "  tell(ARGV[5])\n"
                 "  redis.call('HSET', keys, ARGV[5], ARGV[7])\n"
                 "  return done('1')\n"
                 "end\n"
                 "if now then return { '0', now } end\n"
                 "return { '2' }\n";

const char script_get[] = BEGIN "local all, there, value = true, { '0' }, { '1' }\n"
                                "for i = 5, #ARGV do\n"
                                "  local v = all and redis.call('HGET', keys, ARGV[i])\n"
                                "  all = all and v\n"
                                "  value[i - 3] = v\n"
                                "end\n"
                                "if all then return value end\n"
                                "for i = 5, #ARGV do\n"
                                "  there[i - 3] = tostring(redis.call('HEXISTS', keys, ARGV[i]))\n"
                                "end\n"
                                "return there\n";

const char script_check[] =
    BEGIN "local there = {}\n"
          "for i = 5, #ARGV do\n"
          "  there[i - 4] = tostring(redis.call('HEXISTS', keys, ARGV[i]))\n"
          "end\n"
          "return there\n";

const char script_remove[] = BEGIN_CHANGE "local n = 0\n"
                                          "for i = 5, #ARGV do\n"
                                          "  n = n + redis.call('HDEL', keys, ARGV[i])\n"
                                          "end\n"
                                          "return done(tostring(n))\n";

const char script_count[] = BEGIN "return { tostring(redis.call('HLEN', keys)) }\n";

const char script_renew[] = BEGIN RENEW "renew()\n"
                                        "return {}\n";

const char script_forget[] = BEGIN "redis.call('HDEL', meta, client)\n"
                                   "return {}\n";
