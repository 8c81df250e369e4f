/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/classify/fake_papi.h"

#include <string.h>

#define OK      0
#define EINVAL_ (-1)
#define ENOEVNT (-7)
#define ECNFLCT (-8)
#define ENOTRUN (-9)
#define EISRUN  (-10)
#define ENOEVST (-11)
#define ENOINIT (-16)
#define EXPORT  __attribute__((visibility("default")))

EXPORT struct fake_papi fake_papi;

static struct {
    int used, component, attached, multiplex, running, n, event[FAKE_EVENTS];
    long long value[FAKE_EVENTS];
} set[FAKE_SETS];
static int initialised;

#define FUNCTION(name, ...)                                                                        \
    EXPORT int PAPI_##name(__VA_ARGS__);                                                           \
    EXPORT int PAPI_##name(__VA_ARGS__)
#define NEED(condition, error)                                                                     \
    do {                                                                                           \
        if (fake_papi.is_shut_down || !initialised)                                                \
            return ENOINIT;                                                                        \
        if (!(condition))                                                                          \
            return error;                                                                          \
    } while (0)
#define IS_SET(s) ((s) >= 0 && (s) < FAKE_SETS && set[s].used)

FUNCTION(library_init, int version)
{
    if (version != fake_papi.version)
        return EINVAL_;
    initialised = 1;
    return version;
}

FUNCTION(thread_init, unsigned long (*id)(void))
{
    return id() != 0 ? OK : EINVAL_;
}

FUNCTION(multiplex_init, void)
{
    return OK;
}

static int find(const char *name)
{
    for (int i = 0; i < FAKE_EVENTS; i++)
        if (fake_papi.event[i].name && strcmp(fake_papi.event[i].name, name) == 0)
            return i;
    return -1;
}

FUNCTION(query_named_event, const char *name)
{
    NEED(find(name) >= 0, ENOEVNT);
    return OK;
}

FUNCTION(create_eventset, int *s)
{
    NEED(*s == -1, EINVAL_);
    for (int i = 0; i < FAKE_SETS; i++)
        if (!set[i].used) {
            memset(&set[i], 0, sizeof(set[i]));
            set[i].used = 1;
            set[i].component = -1;
            fake_papi.sets++;
            *s = i;
            return OK;
        }
    return -2;
}

FUNCTION(assign_eventset_component, int s, int component)
{
    NEED(IS_SET(s) && set[s].n == 0, ENOEVST);
    set[s].component = component;
    return OK;
}

FUNCTION(set_opt, int option, const int *value)
{
    NEED(option == 28 && IS_SET(value[0]) && value[1] == 1, EINVAL_);
    NEED(set[value[0]].component == 0, -17);
    fake_papi.inherited++;
    return OK;
}

FUNCTION(attach, int s, unsigned long thread)
{
    NEED(IS_SET(s) && set[s].component == 0, ENOEVST);
    if (fake_papi.attach_error)
        return fake_papi.attach_error;
    set[s].attached = 1;
    if (fake_papi.attached < FAKE_SETS)
        fake_papi.thread[fake_papi.attached] = thread;
    fake_papi.attached++;
    return OK;
}

FUNCTION(set_multiplex, int s)
{
    NEED(IS_SET(s) && set[s].n == 0, EISRUN);
    set[s].multiplex = 1;
    fake_papi.multiplexed++;
    return OK;
}

FUNCTION(add_named_event, int s, const char *name)
{
    NEED(IS_SET(s) && find(name) >= 0, ENOEVNT);
    if (set[s].component == 0 && !set[s].multiplex && set[s].n >= fake_papi.counters)
        return ECNFLCT;
    set[s].event[set[s].n++] = find(name);
    return OK;
}

FUNCTION(start, int s)
{
    NEED(IS_SET(s) && set[s].n > 0, ENOEVST);
    NEED(!set[s].running, EISRUN);
    set[s].running = 1;
    fake_papi.running++;
    for (int i = 0; fake_papi.on_start && i < set[s].n; i++)
        fake_papi.on_start(set[s].event[i]);
    return OK;
}

FUNCTION(read, int s, long long *values)
{
    NEED(IS_SET(s), ENOEVST);
    for (int i = 0; i < set[s].n; i++) {
        set[s].value[i] += fake_papi.event[set[s].event[i]].per_read;
        values[i] = set[s].value[i];
    }
    return OK;
}

FUNCTION(stop, int s, long long *values)
{
    (void)values;
    NEED(IS_SET(s) && set[s].running, ENOTRUN);
    set[s].running = 0;
    fake_papi.running--;
    return OK;
}

FUNCTION(cleanup_eventset, int s)
{
    NEED(IS_SET(s) && !set[s].running, EISRUN);
    set[s].n = 0;
    return OK;
}

FUNCTION(destroy_eventset, int *s)
{
    NEED(IS_SET(*s) && set[*s].n == 0, EINVAL_);
    set[*s].used = 0;
    fake_papi.sets--;
    *s = -1;
    return OK;
}

FUNCTION(num_cmp_hwctrs, int component)
{
    return component == 0 ? fake_papi.counters : 0;
}
