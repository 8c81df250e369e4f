/* SPDX-License-Identifier: BSD-2-Clause
 * See migrate_room.h. */
#include "pages/migrate_room.h"

#include "core/state.h"
#include "place/floor.h"
#include "place/policy.h"
#include "place/shares.h"

#define PLENTY 16u /* while so much of DRAM is free, all comes to it */

uint64_t room_pages(const struct migrate_room *r, const uint64_t on[HY_TIERS],
                    const struct migrate_pass *pass)
{
    uint64_t most = shares_most() / HY_PAGE; /* what others gain more from is theirs */
    struct policy_view v;
    policy_get(&v);
    if (floor_on()) { /* what is charged may lie on PM, or not be touched yet */
        uint64_t spare = spare_bytes(&r->spare);
        uint64_t right = shares_right(), held = on[HY_DRAM] * HY_PAGE;
        uint64_t due = HY_MIN(spare, right - HY_MIN(held, right));
        spare = HY_MAX(spare - HY_MIN(spare, r->ahead), due); /* others are to have that */
        return HY_MIN(share_room(on[HY_DRAM], spare / HY_PAGE, pass->up_pages, pass->down_pages,
                                 v.asked / HY_PAGE),
                      most);
    }
    int64_t room = (int64_t)(policy_dram_share() / HY_PAGE) - (int64_t)(v.used[HY_DRAM] / HY_PAGE);
    return HY_MIN((uint64_t)HY_MAX((int64_t)on[HY_DRAM] + room, (int64_t)0), most);
}

/* Who is CPU-bound would be asked for it again. */
bool room_changed(struct migrate_room *r)
{
    struct policy_view v;
    policy_get(&v);
    bool asked = share_is_asked(&r->share, v.asked, v.used[HY_DRAM]);
    return asked || (v.cls != HY_CLASS_CPU && share_grows(&r->share, policy_dram_share()));
}

bool room_settled(struct migrate_room *r, uint64_t blocks)
{
    bool settled = blocks == r->blocks;
    r->blocks = blocks;
    if (!settled)
        r->share.filled = false; /* of what has come, some may fit */
    return settled;
}

void room_note_free(struct migrate_room *r, int64_t up)
{
    uint64_t held;
    struct policy_view v;
    policy_get(&v);
    spare_moved(&r->spare, up - r->up, v.asked > 0);
    r->up = up;
    spare_note(&r->spare, floor_dram_free(), policy_may_ask(&held, &r->ahead) ? &held : NULL);
}

bool room_for_all(void)
{
    struct policy_view v;
    policy_get(&v);
    if (floor_on() && floor_dram_free() < hy_machine.dram_bytes / PLENTY)
        return false; /* some of what was touched may have come to PM */
    return !shares_wanted() && v.used[HY_PM] == 0 && v.asked == 0 && sampler_extra_dram() == 0;
}
