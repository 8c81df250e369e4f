/* SPDX-License-Identifier: BSD-2-Clause
 * What is believed of what others wrote (contract: registry.h). */
#include <errno.h>
#include <string.h>

#include "place/registry_internal.h"
#include "sys/os.h"

/* Ten windows by default. */
#define STOPPED_NS 10000000000ull

const char *registry_problem(int error)
{
    switch (error) {
    case -EPROTO:
        return "it is no registry, of another version, or was cut short";
    case -EPERM:
        return "it is somebody else's, or others may write to it; one for a group is root's, with "
               "mode 0660";
    case -EUSERS:
        return "all its slots are taken";
    case -EBUSY:
        return "a process that has locked it does not go on";
    case -ENOSPC:
        return "its file system is full";
    default:
        return os_error_name(error);
    }
}

uint64_t registry_believed_dram(const struct reg_slot *s, uint64_t budget)
{
    uint64_t bytes = reg_low48(s->dram);
    return bytes <= budget ? bytes : 0;
}

static void believed_published(const struct reg_slot *s, struct registry_published *ret)
{
    uint32_t cls = s->cls;

    ret->cls = cls < HY_CLASS_MAX ? (enum hy_class)cls : HY_CLASS_UNKNOWN;
#define BELIEVE(field, name, most)                                                                 \
    ret->name = s->field;                                                                          \
    if (ret->name > (most))                                                                        \
        ret->name = 0;
    TOLD_FIELDS(BELIEVE)
#undef BELIEVE
}

/* A name goes to terminals and into JSON: printable ASCII only. */
static void believed_name(const struct reg_slot *s, char ret[16])
{
    const uint64_t raw[2] = {s->name[0], s->name[1]};
    size_t n = 0;

    memcpy(ret, raw, 16);
    for (; n < 15 && ret[n] != '\0'; n++)
        if (ret[n] < ' ' || ret[n] > '~')
            ret[n] = '?';
    memset(ret + n, 0, 16 - n);
}

/* A checked copy of slot `i`, as last seen; false if no participant lives there. */
static bool read_slot(struct registry *r, int i, uint64_t budget, uint64_t now,
                      struct registry_entry *e)
{
    const struct reg_slot s = r->io.seen->slot[i]; /* as it was: it may be freed below */
    bool freed, is_self = i == r->slot;

    if (reg_state(s.word) == REG_FREE || (!is_self && !registry_held_by_living(r, i, &freed)) ||
        reg_state(s.word) != REG_LIVE)
        return false;
    e->slot = (uint32_t)i;
    e->pid = reg_pid(s.word);
    e->here = s.pidns == 0 || s.pidns == r->io.pidns;
    e->is_self = is_self;
    e->dram_bytes = registry_believed_dram(&s, budget);
    believed_published(&s, &e->published);
    e->heartbeat_ns = HY_MIN(s.heartbeat_ns, now);
    memcpy(e->cpus, s.cpus, sizeof(e->cpus));
    believed_name(&s, e->name);
    return true;
}

void registry_read(struct registry *r, struct registry_view *ret)
{
    ret->dram_budget = 0;
    ret->n = 0;
    if (!registry_enter(r))
        return;
    (void)registry_has_slot(r);
    bool whole = reg_refresh(&r->io) == 0 && reg_inspect(r->io.seen) != REG_FOREIGN;
    uint64_t now = os_now_ns();
    ret->dram_budget = reg_low48(r->io.seen->head.budget);
    for (int i = 0; whole && i < r->io.slots; i++)
        if (read_slot(r, i, ret->dram_budget, now, &ret->entry[ret->n]))
            ret->n++;
    registry_exit(r);
}

bool registry_is_stopped(const struct registry_entry *e, uint64_t now_ns)
{
    return !e->is_self && now_ns > e->heartbeat_ns && now_ns - e->heartbeat_ns > STOPPED_NS;
}

void registry_cpus_of_others(const struct registry_view *v, struct cpus_of_others *ret)
{
    uint32_t own = REGISTRY_SLOTS;
    uint64_t now = os_now_ns();

    memset(ret, 0, sizeof(*ret));
    for (unsigned i = 0; i < v->n; i++)
        if (v->entry[i].is_self)
            own = v->entry[i].slot;
    for (unsigned i = 0; i < v->n; i++) {
        const struct registry_entry *e = &v->entry[i];
        uint64_t any = 0;
        bool is_elder = e->pid < os_pid() || (e->pid == os_pid() && e->slot < own);
        /* Of our number elsewhere is somebody else; here it is what we were before exec. */
        if (e->is_self || (e->here && e->pid == os_pid()) || registry_is_stopped(e, now))
            continue;
        for (int k = 0; k < REGISTRY_CPU_WORDS; k++) {
            any |= e->cpus[k];
            ret->all.word[k] |= e->cpus[k];
            /* Of two that chose the same, the younger number gives way, of two with the same number
             * the higher slot: never both. */
            ret->elders.word[k] |= is_elder ? e->cpus[k] : 0;
        }
        ret->confined += any != 0;
    }
}
