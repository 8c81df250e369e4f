/* SPDX-License-Identifier: BSD-2-Clause
 * HYBRID_ADMISSION: a program whose class is known begins when nobody is in its way, and nobody is
 * in whose way it is (rules/admission.h), or when its time to wait is over. What it tells of itself
 * in the registry, so that others can decide, is here as well. process/admit.c waits. */
#ifndef HYBRID_PLACE_ADMISSION_H
#define HYBRID_PLACE_ADMISSION_H

#include "place/registry.h"

struct admission_view {
    bool asked;         /* the option is set */
    uint64_t waited_ns; /* so far */
    uint64_t limit_ns;  /* at most */
    int32_t pid;        /* waited for last, 0: nobody */
    char name[16];      /* of it */
    const char *why;    /* how it ended, or why there was nothing to wait for */
};

/* In the constructor, settings loaded: may this process have to wait? Not one of which nothing is
 * known, and not a helper of one that has waited: its parent has the same settings. */
bool admission_wanted(void);
/* In the constructor, the registry joined: it waits from now on. */
void admission_begin(void);
bool admission_pending(void);
/* One look at the others, by the thread that asks the registry; the answer is admission_pending().
 */
void admission_look(void);
/* It begins, whatever the others do. */
void admission_give_up(const char *why);
void admission_child(void); /* in a forked child: it does not wait */
void admission_get(struct admission_view *ret);
/* Adds to what is published: what this process waits for, what it writes, where its data are. By
 * company.c, with its lock. */
void admission_publish(struct registry_published *published);

#endif
