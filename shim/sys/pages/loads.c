/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/pages/loads.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

#include "sys/raw.h"

#define NEVER    0x7fffffffu /* samples until somebody is woken; nobody waits */
#define TOO_SOON 1000000u    /* ns: a shorter time tells nothing */

int os_load_open(const struct os_load_event *e, uint64_t period, int32_t tid, unsigned order,
                 struct os_load_ring *ret)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = e->type,
        .config = e->config,
        .config1 = e->config1,
        .config2 = e->config2,
        .sample_period = period,
        .sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC,
        .precise_ip = e->precise & 3u,
        .exclude_kernel = e->user_only,
        .exclude_hv = e->user_only,
        .exclude_guest = e->precise > 0,
        /* By numbers of events, not by bytes: so Intel's buffer is emptied at each sample. Else
         * the samples of a thread that never sleeps come late, or not at all. */
        .wakeup_events = NEVER,
    };
    size_t bytes = (((size_t)1 << order) + 1) * HY_PAGE;
    long fd = raw5(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return (int)fd;
    long at = raw6(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    os_close((int)fd);
    if (at < 0)
        return (int)at;
    *ret = (struct os_load_ring){
        .base = (void *)at, .bytes = bytes, .tid = tid ? tid : os_gettid(), .pid = os_pid()};
    return 0;
}

static struct perf_event_mmap_page *page_of(const struct os_load_ring *r)
{
    return r->base && r->pid == os_pid() ? r->base : NULL;
}

void os_load_close(struct os_load_ring *r)
{
    if (page_of(r))
        (void)os_unmap(r->base, r->bytes);
    r->base = NULL;
}

bool os_load_records(const struct os_load_ring *r, struct os_load_records *ret)
{
    struct perf_event_mmap_page *page = page_of(r);
    if (!page)
        return false;
    ret->head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    ret->tail = page->data_tail;
    ret->data = (const uint8_t *)r->base + HY_PAGE;
    ret->size = r->bytes - HY_PAGE;
    return true;
}

void os_load_read(const struct os_load_ring *r, uint64_t tail)
{
    struct perf_event_mmap_page *page = page_of(r);
    if (page)
        __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

unsigned os_load_waited_pct(const struct os_load_ring *r)
{
    const struct perf_event_mmap_page *page = page_of(r);
    uint64_t enabled = 0, running = 0;
    uint32_t before, after = 1;
    /* The kernel changes them under this count. */
    for (int i = 0; page && i < 100; i++) {
        before = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
        enabled = page->time_enabled;
        running = page->time_running;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        after = __atomic_load_n(&page->lock, __ATOMIC_RELAXED);
        if (before == after && before % 2 == 0)
            break;
        enabled = 0;
    }
    if (enabled < TOO_SOON || running >= enabled)
        return 0;
    return (unsigned)(100 - running * 100 / enabled);
}
