/* SPDX-License-Identifier: BSD-2-Clause
 * [behaviours] of a profile, and what a site says of them. See profile_parser.h. */
#include <string.h>

#include "base/text.h"
#include "settings/rules/profile_parser.h"

#define WORDS     7
#define MOST_MS   1e9
#define SLOWEST   1000
#define MOST_CPU  1e6
#define LIST_MOST HY_MAX(PROFILE_BEHAVIOURS, PROFILE_BINS)

static bool decimal(const char *word, double most, double *ret)
{
    return text_parse_decimal(word, strlen(word), ret) == 0 && *ret <= most;
}

/* "120.500 90000 12000 2.790 0.101 0.992 3.217", in the order of the struct. */
bool profile_parse_behaviour(const char *value, void *ret)
{
    struct profile_behaviour b = {0};
    profile_word word[WORDS];

    if (profile_words(value, word, WORDS) != WORDS || !decimal(word[0], MOST_MS, &b.ms) ||
        text_parse_u64(word[1], strlen(word[1]), &b.reads) < 0 ||
        text_parse_u64(word[2], strlen(word[2]), &b.writes) < 0 ||
        !decimal(word[3], SLOWEST, &b.slowdown) || !decimal(word[4], 1, &b.exposure) ||
        !decimal(word[5], 1, &b.foreseen) || !decimal(word[6], MOST_CPU, &b.busy_threads))
        return false;
    memcpy(ret, &b, sizeof(b));
    return true;
}

unsigned profile_counts(const char *value, uint64_t *ret, unsigned most)
{
    uint64_t list[LIST_MOST];
    char word[40];
    unsigned n = 0;

    while (profile_next_word(&value, word, sizeof(word))) {
        if (n == most || text_parse_u64(word, strlen(word), &list[n]) < 0)
            return 0;
        n++;
    }
    if (value[strspn(value, " \t")] != '\0')
        return 0;
    memcpy(ret, list, n * sizeof(list[0]));
    return n;
}

bool profile_heat(const char *value, struct profile_site *ret)
{
    uint64_t list[PROFILE_BINS], sum = 0;

    if (profile_counts(value, list, PROFILE_BINS) != PROFILE_BINS)
        return false;
    for (unsigned i = 0; i < PROFILE_BINS; i++) {
        if (list[i] > PROFILE_HEAT_MOST)
            return false;
        sum += list[i];
    }
    for (unsigned i = 0; i < PROFILE_BINS; i++)
        ret->heat[i] = (uint16_t)list[i];
    ret->has_heat = sum > 0;
    return sum > 0;
}

void profile_check_behaviours(struct parser *ps)
{
    struct profile *p = ps->p;

    for (unsigned i = 0; i < p->n_sites; i++) {
        struct profile_site *s = &p->sites[i];

        if ((s->n_reads_in == 0 || s->n_reads_in == p->n_behaviours) &&
            (s->n_writes_in == 0 || s->n_writes_in == p->n_behaviours))
            continue;
        profile_tell(ps,
                     "[site %s] tells of %u and %u behaviours, [behaviours] of %u; its lists "
                     "are ignored",
                     s->name, s->n_reads_in, s->n_writes_in, p->n_behaviours);
        s->n_reads_in = s->n_writes_in = 0;
    }
}
