/* SPDX-License-Identifier: BSD-2-Clause
 * How much DRAM the watched pages may have: what is there, what is free, what others leave or ask
 * for. By the pages' thread. */
#ifndef HYBRID_PAGES_MIGRATE_ROOM_H
#define HYBRID_PAGES_MIGRATE_ROOM_H

#include "migrator.h"
#include "pages/rules/share.h"

struct migrate_room { /* zeros at first */
    struct spare spare;
    uint64_t ahead; /* bytes that those wish for who go before this process, at the end of a look */
    int64_t up;     /* bytes on balance, until the last pass */
    uint64_t blocks; /* watched, at the last pass */
    struct share share;
};

/* Watched pages that may be on DRAM: what is there, and what is free; less when others ask. */
uint64_t room_pages(const struct migrate_room *r, const uint64_t on[HY_TIERS],
                    const struct migrate_pass *pass);
/* Others leave DRAM, or ask for some. */
bool room_changed(struct migrate_room *r);
/* No memory has come or gone since the last pass. */
bool room_settled(struct migrate_room *r, uint64_t blocks);
/* At the end of a look; `up` bytes have come up by now, on balance. */
void room_note_free(struct migrate_room *r, int64_t up);
/* All lies on DRAM, and nobody asks for it: nothing that looking could tell would be acted on. */
bool room_for_all(void);

#endif
