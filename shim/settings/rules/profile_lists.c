/* SPDX-License-Identifier: BSD-2-Clause
 * Values of a profile that are lists: [phases], [behaviours] and [tasks], whose keys are numbered,
 * and what a site says of behaviours and of the parts of its blocks. See profile_parser.h. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "settings/rules/profile_parser.h"

#define WORDS     7
#define MOST_MS   1e9
#define SLOWEST   1000
#define MOST_CPU  1e6
#define LIST_MOST HY_MAX(PROFILE_BEHAVIOURS, PROFILE_BINS)
#define MOST_NS   3600000000000u /* of a task: an hour */

typedef char list_word[120];

static bool next_word(const char **at, char *word, size_t cap)
{
    size_t n;

    *at += strspn(*at, " \t");
    n = strcspn(*at, " \t");
    if (n == 0 || n >= cap)
        return false;
    memcpy(word, *at, n);
    word[n] = '\0';
    *at += n;
    return true;
}

static unsigned words_of(const char *value, list_word *word, unsigned most)
{
    unsigned n = 0;

    while (n < most && next_word(&value, word[n], sizeof(word[n])))
        n++;
    return value[strspn(value, " \t")] == '\0' ? n : 0;
}

/* "120 bandwidth 5.97": ms from the start, class, slowdown; the last may be missing. */
static bool parse_phase(const char *value, void *ret)
{
    struct profile_phase p = {0};
    list_word word[3];
    unsigned n = words_of(value, word, 3);

    if (n < 2 || text_parse_u64(word[0], strlen(word[0]), &p.start_ms) < 0 ||
        !profile_set_class(&p.cls, word[1]) ||
        (n == 3 && !profile_set_slowdown(&p.slowdown, word[2])))
        return false;
    memcpy(ret, &p, sizeof(p));
    return true;
}

static bool decimal(const char *word, double most, double *ret)
{
    return text_parse_decimal(word, strlen(word), ret) == 0 && *ret <= most;
}

/* "120.500 90000 12000 2.790 0.101 0.992 3.217", in the order of the struct. */
static bool parse_behaviour(const char *value, void *ret)
{
    struct profile_behaviour b = {0};
    list_word word[WORDS];

    if (words_of(value, word, WORDS) != WORDS || !decimal(word[0], MOST_MS, &b.ms) ||
        text_parse_u64(word[1], strlen(word[1]), &b.reads) < 0 ||
        text_parse_u64(word[2], strlen(word[2]), &b.writes) < 0 ||
        !decimal(word[3], SLOWEST, &b.slowdown) || !decimal(word[4], 1, &b.exposure) ||
        !decimal(word[5], 1, &b.foreseen) || !decimal(word[6], MOST_CPU, &b.busy_threads))
        return false;
    memcpy(ret, &b, sizeof(b));
    return true;
}

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

static bool parse_task(const char *value, void *ret)
{
    struct profile_task t = {0};
    list_word word[3 + HY_TIERS];

    if (words_of(value, word, 3 + HY_TIERS) != 3 + HY_TIERS ||
        !profile_set_frame(&t.code, word[0]) || !parse_data(word[1], &t) ||
        text_parse_u64(word[2], strlen(word[2]), &t.count) < 0)
        return false;
    for (int tier = 0; tier < HY_TIERS; tier++)
        if (!parse_time(word[3 + tier], &t.ns[tier]))
            return false;
    memcpy(ret, &t, sizeof(t));
    return true;
}

struct numbered {
    const char *what;              /* before the number */
    size_t list, bytes, most, had; /* in struct profile: the array, its elements, how many it has */
    bool (*parse)(const char *value, void *ret);
    const char *expected;
};
#define NUMBERED(what, list, parse, expected)                                                      \
    {                                                                                              \
        what, offsetof(struct profile, list), sizeof(((struct profile *)0)->list[0]),              \
            HY_ARRAY_SIZE(((struct profile *)0)->list), offsetof(struct profile, n_##list), parse, \
            expected                                                                               \
    }
static const struct numbered phases = NUMBERED(
    "phase", phases, parse_phase, "milliseconds, class and slowdown, as in 120 bandwidth 5.97");
static const struct numbered behaviours =
    NUMBERED("behaviour", behaviours, parse_behaviour,
             "milliseconds, lines read and written, slowdown, exposure, foreseen and busy threads, "
             "as in 120.5 90000 12000 2.79 0.1 0.99 3.2");
static const struct numbered tasks = NUMBERED(
    "task", tasks, parse_task,
    "code, data, count, time on DRAM and on PM, as in 0123abcd+0x4f0 256K+64K 120 310us -");

void profile_numbered_key(struct parser *ps, const char *name, const char *value)
{
    const struct numbered *l = ps->section == SEC_PHASES       ? &phases
                               : ps->section == SEC_BEHAVIOURS ? &behaviours
                                                               : &tasks;
    unsigned *had = (unsigned *)(void *)((char *)ps->p + l->had), most = (unsigned)l->most;
    size_t len = strlen(l->what);
    char first[16];
    uint64_t n;

    if (strncmp(name, l->what, len) != 0 ||
        text_parse_u64(name + len, strlen(name + len), &n) < 0) {
        (void)snprintf(first, sizeof(first), "%s1", l->what);
        profile_tell_not_in_list(ps, "key", name, strlen(name), first);
    } else if (n != *had + 1 || n > most) {
        profile_tell(ps,
                     "%ss are numbered from 1 to at most %u, one after the other; this one is "
                     "ignored",
                     l->what, most);
    } else if (l->parse(value, (char *)ps->p + l->list + *had * l->bytes)) {
        ++*had;
    } else {
        profile_tell_value(ps, name, value, l->expected);
    }
}

unsigned profile_counts(const char *value, uint64_t *ret, unsigned most)
{
    uint64_t list[LIST_MOST];
    char word[40];
    unsigned n = 0;

    while (next_word(&value, word, sizeof(word))) {
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
