/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/seen.h"

struct page_seen seen_from_counts(uint64_t reads, uint64_t writes, uint64_t most)
{
    /* wide: counts may be anything */
    unsigned __int128 top = HY_MAX(HY_MAX(reads, writes), HY_MAX(most, (uint64_t)1));
    unsigned r = (unsigned)(((unsigned __int128)reads * HISTORY_ROUNDS + top - 1) / top);
    unsigned w = (unsigned)(((unsigned __int128)writes * HISTORY_ROUNDS + top / 2) / top);
    /* Rounding must not change the domain. */
    if (write_domain(reads, writes))
        w = HY_MAX(HY_MAX(w, 1u), (r + 1) / 2);
    else if (w > 0 && 2 * w >= r)
        w = (r - 1) / 2;
    return (struct page_seen){.reads = (uint8_t)((1u << r) - 1),
                              .writes = (uint8_t)((1u << w) - 1)};
}

struct observed seen_observe(const struct page_seen *s, unsigned rounds)
{
    if ((s->reads | s->writes) == 0) /* nearly all of a large footprint */
        return (struct observed){.known = true, .watched = 1};
    unsigned hits = (unsigned)__builtin_popcount(s->reads | s->writes);
    unsigned level = heat_level(hits, rounds);
    return (struct observed){
        .known = true,
        .wd = write_domain((unsigned)__builtin_popcount(s->reads),
                           (unsigned)__builtin_popcount(s->writes)),
        .written = s->writes != 0,
        .stable = reuse_stable(s->reads | s->writes, rounds),
        .level = (uint8_t)level,
        .least = (uint8_t)level,
        .most = (uint8_t)level,
        .watched = 1,
    };
}
