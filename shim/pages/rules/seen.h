/* SPDX-License-Identifier: BSD-2-Clause
 * What the rounds of a pass say of one page. Pure. */
#ifndef HYBRID_PAGES_RULES_SEEN_H
#define HYBRID_PAGES_RULES_SEEN_H

#include "pages/rules/history.h"

struct observed {
    bool known, wd, written, stable, differ; /* differ: two watched pages were not alike */
    uint8_t level, least, most;
    uint16_t watched;
};
/* Of one watched page. */
struct observed seen_observe(const struct page_seen *s, unsigned rounds);

#endif
