/* SPDX-License-Identifier: BSD-2-Clause
 * See sde.h. The few declarations of libsde's interface that are needed are made here: its
 * header is in a development package that users of an emulated machine do not need. */
#include "program/sde.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#include "pmemu.h"

typedef void *(*sde_init)(const char *library);
typedef int (*sde_register_cb)(void *handle, const char *event, int mode, int type,
                               long long (*read)(void *), void *arg);
typedef int (*sde_describe)(void *handle, const char *event, const char *description);

#define SDE_READ_ONLY_DELTA 0x00
#define SDE_LONG_LONG       0x0

static const struct {
    const char *name, *what;
} events[] = {
#define X(name, what) {#name, what},
    PMEMU_EVENTS(X)
#undef X
};

static long long read_event(void *number)
{
    return pmemu_event((int)(intptr_t)number);
}

static int offer(void)
{
    void *lib = dlopen("libsde.so.1", RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE), *handle;
    sde_init init = lib ? (sde_init)dlsym(lib, "papi_sde_init") : NULL;
    sde_register_cb add = lib ? (sde_register_cb)dlsym(lib, "papi_sde_register_counter_cb") : NULL;
    sde_describe describe = lib ? (sde_describe)dlsym(lib, "papi_sde_describe_counter") : NULL;

    if (!lib)
        (void)dlerror(); /* the program's next one is not about us */
    if (!init || !add || !describe)
        return -ENOENT;
    handle = init("pmemu");
    for (int i = 0; handle && i < PMEMU_EVENT_COUNT; i++)
        if (add(handle, events[i].name, SDE_READ_ONLY_DELTA, SDE_LONG_LONG, read_event,
                (void *)(intptr_t)i) == 0)
            (void)describe(handle, events[i].name, events[i].what);
    return handle ? 0 : -ENOENT;
}

int emu_sde_register(void)
{
    enum { NOT_YET = 1, BUSY, DONE, FAILED };
    static _Atomic int state = NOT_YET;
    int now = NOT_YET;

    /* No mutex: those of libpthread are the front end's. */
    if (atomic_compare_exchange_strong(&state, &now, BUSY))
        atomic_store(&state, now = offer() == 0 ? DONE : FAILED);
    return now == DONE ? 0 : now == BUSY ? -EAGAIN : -ENOENT;
}

__attribute__((visibility("default"))) int pmemu_offer_events(void)
{
    return emu_sde_register();
}
