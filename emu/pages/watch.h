/* SPDX-License-Identifier: BSD-2-Clause
 * Who looks at accesses that reach the LLC: counts by page and samples. Off, it costs one
 * load there and nothing for hits in the L1. */
#ifndef EMU_WATCH_H
#define EMU_WATCH_H

#include "model/cache.h"

enum { EMU_WATCH_PAGES = 1, EMU_WATCH_SAMPLES = 2 };

/* Bits of who is on; changed by emu_watch_on and emu_watch_off only. */
extern unsigned emu_watching;

struct emu_seen {
    uintptr_t address;
    enum emu_tier tier; /* of the page */
    bool store, hit, dirtied;
    int64_t stall_ps;
};

/* Who is on is called with each of them, in the thread that makes the access. */
struct emu_watcher {
    void (*see)(const struct emu_seen *s);
    void (*forked)(void); /* in the child of a fork; NULL: it stays on there */
};

void emu_watch(const struct emu_seen *s);
/* `w` stays: a thread may still be in it when it is switched off. */
void emu_watch_on(unsigned who, const struct emu_watcher *w);
void emu_watch_off(unsigned who);
void emu_watch_forked(void);

#endif
