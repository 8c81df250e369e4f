/* SPDX-License-Identifier: BSD-2-Clause
 * [tasks] of a profile. See profile_parser.h. */
#include <string.h>

#include "base/text.h"
#include "settings/rules/profile_parser.h"

#define MOST_NS 3600000000000u /* of a task: an hour */

/* "256K+128K": of each dependence, the whole pages of its data. */
static bool parse_data(char *word, struct profile_task *t)
{
    for (char *at = word, *plus; at; at = plus ? plus + 1 : NULL) {
        plus = strchr(at, '+');
        if (t->needs == PROFILE_MAX_NEEDS ||
            text_parse_size(at, plus ? (size_t)(plus - at) : strlen(at), &t->bytes[t->needs]) < 0)
            return false;
        t->needs++;
    }
    return true;
}

static bool parse_time(const char *word, uint64_t *ret)
{
    if (strcmp(word, "-") == 0)
        return true;
    return text_parse_time(word, strlen(word), ret) == 0 && *ret > 0 && *ret <= MOST_NS;
}

bool profile_parse_task(const char *value, void *ret)
{
    struct profile_task t = {0};
    profile_word word[3 + HY_TIERS];

    if (profile_words(value, word, 3 + HY_TIERS) != 3 + HY_TIERS ||
        !profile_set_frame(&t.code, word[0]) || !parse_data(word[1], &t) ||
        text_parse_u64(word[2], strlen(word[2]), &t.count) < 0)
        return false;
    for (int tier = 0; tier < HY_TIERS; tier++)
        if (!parse_time(word[3 + tier], &t.ns[tier]))
            return false;
    memcpy(ret, &t, sizeof(t));
    return true;
}
