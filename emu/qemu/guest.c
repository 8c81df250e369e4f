/* SPDX-License-Identifier: BSD-2-Clause
 * Guest memory and blocked threads. See guest.h. */
#include "qemu/guest.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "qemu/plugin_api.h"

int guest_read(uint64_t address, void *to, size_t bytes)
{
    struct iovec here = {to, bytes}, there = {(void *)(address + guest_base), bytes}; /* NOLINT */
    int e = errno;
    bool done = process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
    errno = e;
    return done ? 0 : -EFAULT;
}

int guest_write(uint64_t address, const void *from, size_t bytes)
{
    struct iovec here = {(void *)from, bytes};
    struct iovec there = {(void *)(address + guest_base), bytes}; /* NOLINT: guest's address */
    int e = errno;
    bool done = process_vm_writev(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
    errno = e;
    return done ? 0 : -EFAULT;
}

int guest_patch(uint64_t address, const void *with, size_t bytes)
{
    struct guest_call *c = &guest_self()->call;

    if (bytes > sizeof(c->saved) || guest_read(address, c->saved, bytes) < 0 ||
        guest_write(address, with, bytes) < 0)
        return -EFAULT;
    c->patched = address;
    c->patched_bytes = bytes;
    return 0;
}

void guest_unpatch(void)
{
    struct guest_call *c = &guest_self()->call;
    if (c->patched)
        (void)guest_write(c->patched, c->saved, c->patched_bytes);
    c->patched = 0;
}

static long switches(void)
{
    struct rusage u;
    return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nvcsw : 0;
}

void guest_away(uint64_t wait_for)
{
    struct guest_call *c = &guest_self()->call;

    if (!emu_live() || c->away)
        return;
    emu_away(wait_for);
    c->away = true;
    c->switches = switches();
}

static void back(struct guest_thread *t, int64_t known)
{
    int64_t before = emu_now();

    t->call.away = false;
    emu_back(known);
    t->idle_ps += emu_now() - before;
}

void guest_back(int64_t known)
{
    struct guest_thread *t = guest_self();

    if (t->call.away)
        back(t, known < 0 && switches() == t->call.switches ? emu_now() : known);
}
