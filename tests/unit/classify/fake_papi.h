/* SPDX-License-Identifier: BSD-2-Clause
 * A libpapi for machines without a PMU: the functions that shim/classify/counters_papi.c
 * uses, with the arguments and errors of the real one, over events that a test names. */
#ifndef HYBRID_TESTS_FAKE_PAPI_H
#define HYBRID_TESTS_FAKE_PAPI_H

#define FAKE_EVENTS 16
#define FAKE_SETS   64

struct fake_papi {
    int version; /* that library_init accepts */
    struct {
        const char *name;
        long long per_read; /* what each running set counts between two reads */
    } event[FAKE_EVENTS];
    int counters;     /* events that count at a time without multiplexing */
    int attach_error; /* returned by PAPI_attach */
    int is_shut_down; /* by the program */
    /* What was done. */
    int sets, running, inherited, attached, multiplexed;
    unsigned long thread[FAKE_SETS];
    void (*on_start)(int event); /* each event of a set that starts; NULL: nobody asks */
};

#endif
