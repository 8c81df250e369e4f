/* SPDX-License-Identifier: BSD-2-Clause
 * A gate for a group of programs: their timed parts begin together, and nobody verifies
 * while another still works. On an emulated machine they begin at one virtual time, that
 * of the last to arrive, however late the computer started it; waiting takes none.
 *
 * The gate is a file, made by the first comer. A program that is killed is found by the
 * lock that it held on a byte of the file, and is waited for no longer; one that never
 * comes ends the others with status 1 after GATE_PATIENCE_S without any change. */
#ifndef BENCH_WORKLOADS_GATE_H
#define BENCH_WORKLOADS_GATE_H

#include <stdint.h>

#define GATE_PROGRAMS   64
#define GATE_PATIENCE_S 120

/* The file: 8-byte words in the machine's order. A runner may read all, and lower
 * `wanted` when it knows that a program will not come. */
struct gate_file {
    _Atomic uint64_t arrived;  /* at the start gate */
    _Atomic uint64_t wanted;   /* programs in the group */
    _Atomic uint64_t finished; /* at the end gate */
    _Atomic uint64_t came;     /* slots handed out */
    _Atomic uint64_t key;      /* of the waits, on the emulated machine */
    struct {
        _Atomic int64_t latest_ns; /* virtual time of the last to arrive */
        _Atomic uint32_t open;     /* futex */
        uint32_t unused;
    } door[2];
    _Atomic uint64_t state[GATE_PROGRAMS]; /* enum gate_state */
};

enum gate_state { GATE_NOT_COME, GATE_CAME, GATE_AT_START, GATE_AT_END, GATE_DEAD };

/* Take a place in a group of `count`; before anything slow. NULL or what is wrong. */
const char *gate_open(const char *path, unsigned count);
/* Both return at once without gate_open(). NULL or what is wrong. */
const char *gate_start(void);
const char *gate_end(void);

#endif
