/* SPDX-License-Identifier: BSD-2-Clause
 * The data of the next tasks come to DRAM before these start (paper 003, III.C to III.F). One
 * thread, the pages', reads what tasks tell (events.h), knows which ones start next
 * (rules/shadow.h), shares the DRAM among them (rules/stage_plan.h) and moves what pays back. Tasks
 * never wait for it; a stage whose task has begun ends there. */
#ifndef HYBRID_TASKS_STAGING_H
#define HYBRID_TASKS_STAGING_H

#include "settings/rules/profile.h"
#include "sys/walk/modules.h"

/* Who moves pages; all of it is called by the thread that calls staging_serve. */
struct staging_host {
    uint64_t (*now_ns)(void);     /* the clock of the tasks' events */
    uint64_t (*spent_ns)(void);   /* processor time of this thread */
    uint64_t (*may_move)(void);   /* pages, now, by the rate */
    uint64_t (*free_pages)(void); /* of DRAM */
    /* On which tier; -1: on none. At most 512 pages. 0 or -errno. */
    int (*where)(void *base, unsigned pages, int8_t *ret_tier);
    /* At most 512 pages. False: no room there, or it cannot be done. */
    bool (*move)(void *base, unsigned pages, enum hy_tier to);
    double (*move_ns)(void);  /* a page, as measured */
    double (*may_lose)(void); /* ns of the run, on trials */
    void (*lose)(double ns);  /* a trial that did not pay has; 0: nothing */
    double (*slowdown)(void); /* of the program on PM by its counts; 0: not known */
};

#define STAGING_TYPES 8u
struct staging_type {
    uint8_t id[MODULE_ID_BYTES]; /* build-id of the module, all zero: not known */
    uint64_t offset;             /* of the function in it */
    uint64_t bytes, ran, mean_ns;
    int64_t saving_ns; /* of an instance with all its data on DRAM, as measured; 0: not known */
    bool off;
};

struct staging_view { /* zeros: nothing was watched */
    bool watched;
    uint64_t tasks, dropped; /* ended; events that found no room */
    uint64_t loops;          /* of tasks, which name no data */
    uint64_t stages, late;   /* made; ended as their task had begun */
    uint64_t hits;           /* tasks that ran on staged data */
    uint64_t staged_pages, evicted_pages;
    int64_t saved_ns, cost_ns; /* by tasks on staged data, as measured; what the moves took */
    unsigned types, types_off;
    struct staging_type type[STAGING_TYPES]; /* the first few */
};

/* Begin to watch. */
void staging_open(const struct staging_host *host);
/* Tasks are no longer watched; what is known stays. */
void staging_close(void);
/* Look at what came, and stage the data of one task at most. Returns after how many ns to call
 * again, UINT64_MAX: whenever there is something else to do. */
uint64_t staging_serve(void);
/* Calls fn for what was staged for tasks that run or are among the next, and is still on DRAM. */
void staging_each(void (*fn)(void *base, size_t bytes));
/* From any thread. */
void staging_get(struct staging_view *ret);
/* From now on types are told to a later run: PROFILE_MAX_TASKS at most; how many. */
void staging_record(void);
unsigned staging_known(struct profile_task *ret);
void staging_child(void);

#endif
