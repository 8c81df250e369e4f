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

static bool parse_task(const char *value, struct profile_task *ret)
{
    struct profile_task t = {0};
    char word[120];

    if (!profile_next_word(&value, word, sizeof(word)) || !profile_set_frame(&t.code, word))
        return false;
    if (!profile_next_word(&value, word, sizeof(word)) || !parse_data(word, &t))
        return false;
    if (!profile_next_word(&value, word, sizeof(word)) ||
        text_parse_u64(word, strlen(word), &t.count) < 0)
        return false;
    for (int tier = 0; tier < HY_TIERS; tier++)
        if (!profile_next_word(&value, word, sizeof(word)) || !parse_time(word, &t.ns[tier]))
            return false;
    if (value[strspn(value, " \t")] != '\0')
        return false;
    *ret = t;
    return true;
}

void profile_task_key(struct parser *ps, const char *name, const char *value)
{
    struct profile *p = ps->p;

    if (!profile_is_next(ps, "task", name, p->n_tasks, PROFILE_MAX_TASKS))
        return;
    if (parse_task(value, &p->tasks[p->n_tasks]))
        p->n_tasks++;
    else
        profile_tell_value(ps, name, value,
                           "code, data, count, time on DRAM and on PM, as in "
                           "0123abcd+0x4f0 256K+64K 120 310us -");
}
