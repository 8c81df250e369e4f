/* SPDX-License-Identifier: BSD-2-Clause
 * A registry file with any content: opening, joining, claiming and reading do
 * not crash, believe nothing impossible, and leave foreign files alone.
 *
 * Input: one byte of how (bits below), then the content: laid over the file
 * from its start, or repeated over all slots. */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "place/registry.h"
#include "place/registry_file.h"

enum {
    READY_HEADER = 1,  /* as a finished file has it */
    OVER_SLOTS = 2,    /* content goes to the slots, repeated */
    LIVING_OWNERS = 4, /* every third slot belongs to somebody alive */
    AS_READER = 8,
};

#define BUDGET HY_GIB

static char path[300];
static struct reg_file *file, ready, before;
static uint64_t alive; /* identity of a living process that is not this one */

static void remove_file(void)
{
    unlink(path);
}

static void prepare(void)
{
    const char *tmp = getenv("TMPDIR");
    struct registry *r;
    struct os_proc_id id;

    snprintf(path, sizeof(path), "%s/fuzz-registry-%d", tmp != NULL ? tmp : "/tmp", (int)getpid());
    unlink(path);
    CHECK(registry_open(path, BUDGET, &r) == 0);
    registry_close(r);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    file = mmap(NULL, REGISTRY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(file != MAP_FAILED);
    close(fd);
    ready = *file;
    CHECK(os_proc_id(getppid(), &id) == 0);
    alive = reg_identity(&id);
    atexit(remove_file);
}

static void fill(const uint8_t *data, size_t size, uint8_t how)
{
    if (how & READY_HEADER)
        *file = ready;
    else
        memset(file, 0, sizeof(*file));
    if (size > 0 && (how & OVER_SLOTS)) {
        char *slots = (char *)file->slot;
        memset(file->head.used, 1, sizeof(file->head.used));
        for (size_t at = 0; at < sizeof(file->slot); at += size)
            memcpy(slots + at, data, HY_MIN(size, sizeof(file->slot) - at));
    } else {
        memcpy(file, data, HY_MIN(size, sizeof(*file)));
    }
    if (how & LIVING_OWNERS)
        for (int i = 0; i < REGISTRY_SLOTS; i += 3)
            file->slot[i].word = alive | (file->slot[i].word & 3);
}

static void check_view(struct registry *r)
{
    static struct registry_view v;

    registry_read(r, &v);
    CHECK(v.dram_budget <= REGISTRY_MAX_BYTES);
    CHECK(v.n <= REGISTRY_SLOTS);
    for (unsigned i = 0; i < v.n; i++) {
        const struct registry_entry *e = &v.entry[i];
        CHECK(e->pid > 0);
        const struct registry_published *t = &e->published;
        CHECK((unsigned)t->cls < HY_CLASS_MAX);
        CHECK(e->dram_bytes <= v.dram_budget);
        CHECK(t->pm_bytes <= REGISTRY_MAX_BYTES && t->wish_bytes <= REGISTRY_MAX_BYTES);
        CHECK(t->asked_bytes <= REGISTRY_MAX_BYTES && t->written_bytes <= REGISTRY_MAX_BYTES);
        CHECK(t->promoted_bytes <= REGISTRY_MAX_BYTES && t->demoted_bytes <= REGISTRY_MAX_BYTES);
        CHECK(t->confidence <= 1000 && t->slowdown <= 1000000 && t->placed_slowdown <= 1000000);
        CHECK(t->threads <= 1u << 22 && t->cap <= 1u << 22);
        CHECK(t->ebw_dram <= 1000000 && t->ebw_pm <= 1000000 && t->pm_written <= 1000);
        CHECK(t->writers <= 1000000 && t->writers_free <= 1000000);
        CHECK(t->held <= 1000000 && t->hindered <= 1000000);
        CHECK(t->paced <= 1u << 22 && t->own_best <= 1u << 22 && t->paced_for <= 1u << 22 &&
              t->paced_since <= INT64_MAX);
        for (int k = 0; k < REGISTRY_CURVE; k++)
            CHECK(t->time_at[k] <= 1000000);
        CHECK(t->curve_bytes <= REGISTRY_MAX_BYTES && t->curve_dram <= REGISTRY_MAX_BYTES);
        CHECK(t->curve_takes <= REGISTRY_MAX_BYTES);
        CHECK(t->need_bytes <= REGISTRY_MAX_BYTES && t->run_ns <= INT64_MAX);
        CHECK(t->curve_now <= 1000000 && t->weight <= 10000 && t->move_ns <= 1000000);
        CHECK(t->cache_class <= 255 && t->cache_ways <= 64);
        CHECK(e->heartbeat_ns <= os_now_ns());
        CHECK(memchr(e->name, '\0', sizeof(e->name)) != NULL);
        for (const char *c = e->name; *c != '\0'; c++)
            CHECK(*c >= ' ' && *c <= '~');
    }
}

static void participate(struct registry *r, uint64_t bytes)
{
    check_view(r);
    if (registry_join(r, HY_CLASS_BANDWIDTH) == 0) {
        CHECK(registry_joined(r));
        int err = registry_claim_dram(r, bytes);
        CHECK(err == 0 || err == -ENOSPC);
        struct registry_published published;
        memset(&published, (uint8_t)bytes, sizeof(published));
        registry_publish(r, &published);
        registry_return_dram(r, bytes / 2);
        check_view(r);
        registry_leave(r);
    }
    check_view(r);
    CHECK(!registry_joined(r));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct registry *r;
    uint64_t bytes = BUDGET / 2;

    if (file == NULL)
        prepare();
    if (size == 0)
        return 0;
    fill(data + 1, size - 1, data[0]);
    if (size > 8)
        memcpy(&bytes, data + size - 8, 8);
    before = *file;
    bool reader = (data[0] & AS_READER) != 0;
    int err = reader ? registry_open_readonly(path, &r) : registry_open(path, BUDGET, &r);
    CHECK(err == 0 || err == -EPROTO);
    if (err == 0) {
        if (reader)
            check_view(r);
        else
            participate(r, bytes);
        registry_close(r);
    }
    if (reader || err != 0)
        CHECK(memcmp(&before, file, sizeof(before)) == 0);
    return 0;
}
