/* SPDX-License-Identifier: BSD-2-Clause
 * See watch.h. */
#include "pages/watch.h"

#include <stddef.h>

unsigned emu_watching;

/* By the number of the bit; written before the bit is set, and never taken back. */
static const struct emu_watcher *watcher[2];

void emu_watch(const struct emu_seen *s)
{
    unsigned who = __atomic_load_n(&emu_watching, __ATOMIC_ACQUIRE);
    if (who & EMU_WATCH_PAGES)
        watcher[0]->see(s);
    if (who & EMU_WATCH_SAMPLES)
        watcher[1]->see(s);
}

void emu_watch_on(unsigned who, const struct emu_watcher *w)
{
    __atomic_store_n(&watcher[__builtin_ctz(who)], w, __ATOMIC_RELAXED);
    __atomic_fetch_or(&emu_watching, who, __ATOMIC_RELEASE);
}

void emu_watch_off(unsigned who)
{
    __atomic_fetch_and(&emu_watching, ~who, __ATOMIC_RELEASE);
}

void emu_watch_forked(void)
{
    for (int i = 0; i < 2; i++)
        if (watcher[i] && watcher[i]->forked)
            watcher[i]->forked();
}
