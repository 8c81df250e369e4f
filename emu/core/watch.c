/* SPDX-License-Identifier: BSD-2-Clause
 * See watch.h. */
#include "core/watch.h"

#include "core/page_counts.h"
#include "core/samples.h"

unsigned emu_watching;

void emu_watch(const struct emu_seen *s)
{
    unsigned who = __atomic_load_n(&emu_watching, __ATOMIC_ACQUIRE);
    if (who & EMU_WATCH_PAGES)
        emu_page_count(s->address, s->tier, !s->hit, s->dirtied);
    if (who & EMU_WATCH_SAMPLES)
        emu_samples_see(s);
}

void emu_watch_set(unsigned who, bool on)
{
    if (on)
        __atomic_fetch_or(&emu_watching, who, __ATOMIC_RELEASE);
    else
        __atomic_fetch_and(&emu_watching, ~who, __ATOMIC_RELEASE);
}

void emu_watch_forked(void)
{
    emu_samples_close();
}
