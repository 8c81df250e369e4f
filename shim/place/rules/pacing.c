/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/pacing.h"

static double writers_of(const struct pacing_peer *p)
{
    return p->writers > 0 ? p->writers : 0;
}

static double beside_others(const struct pacing_peer *p, unsigned n, unsigned i)
{
    double sum = 0;

    for (unsigned k = 0; k < n; k++)
        sum += k == i ? 0 : writers_of(&p[k]);
    return sum;
}

static double loss(const struct pacing_peer *victim, double writers)
{
    double q = HY_MIN(writers, PACING_QUEUE) / PACING_QUEUE;

    return victim->held > 1 ? (victim->held - 1) * q * q : 0;
}

double pacing_hindered(const struct pacing_peer *p, unsigned n, unsigned i)
{
    return 1 + loss(&p[i], beside_others(p, n, i));
}

struct pacing_victim pacing_find(const struct pacing_peer *p, unsigned n, unsigned self, bool paced)
{
    double least = paced ? PACING_GIVES / 2 : PACING_GIVES, own, all;
    struct pacing_victim found = {0};
    double lost = 0;

    if (self >= n || (own = writers_of(&p[self])) <= 0)
        return found;
    all = own; /* of everybody: the sum without each victim follows, in one pass */
    for (unsigned i = 0; i < n; i++)
        all += i == self ? 0 : writers_of(&p[i]);
    for (unsigned i = 0; i < n; i++) {
        double others = HY_MAX(all - writers_of(&p[i]), own), loses;
        if (i == self)
            continue;
        loses = loss(&p[i], others) * own / others;
        lost += loses / (1 + loses);
        if (loses > least && loses > found.loses)
            found = (struct pacing_victim){true, i, loses, 0};
    }
    found.lost = found.any ? lost : 0;
    return found;
}

double pacing_tries(double gain)
{
    return HY_MAX(PACING_GIVES - (1 - gain), REGRET_SHARE);
}

bool pacing_settle(struct pacing_turn *t, bool found)
{
    t->against = found == t->paced ? 0 : t->against + 1;
    if (t->against < (t->paced ? 3u : 2u))
        return false;
    t->paced = found;
    t->against = 0;
    return true;
}
