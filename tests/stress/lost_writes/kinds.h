/* SPDX-License-Identifier: BSD-2-Clause
 * Ways to write into memory: stores of the CPU, copies by system calls, and writes into
 * pages that the kernel holds on to until they are done. Each writer owns one slot of some
 * pages, knows what is in it, and looks before every write whether that is still there. */
#ifndef LOST_WRITES_KINDS_H
#define LOST_WRITES_KINDS_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

/* SLOT: the least that O_DIRECT reads. PINNED: the pages that io_uring's fixed buffer is in. */
enum { PAGE = 4096, SLOT = 512, WORDS = SLOT / 8, SLOTS = PAGE / SLOT, PAGES = 512, PINNED = 8 };

enum kind {
    PLAIN,
    VECTOR16,
    VECTOR32,
    STREAMING,
    STRING,
    READ,
    RECV,
    SPLICED,
    URING,
    URING_DIRECT,
    URING_FIXED,
    VM_WRITEV,
    VM_WRITEV_OTHER,
    PROC_MEM,
    DIRECT,
    KINDS
};
extern const char *const kind_names[KINDS];

struct ring;
struct writer {
    enum kind kind;
    pthread_t thread;
    char *memory;
    uint64_t random, writes;
    uint32_t last[PAGES]; /* number of the last write; 0: none */
    int fd[2];
    pid_t helper;
    struct ring *ring;
    uint64_t *block; /* of one slot, aligned */
};

/* What lies in a slot after its `value`th write. */
void kind_fill(const struct writer *w, unsigned page, uint32_t value, uint64_t *words);
/* Where it is. */
char *kind_slot(const struct writer *w, unsigned page);
/* A page of those that this kind writes to; phase 0: any of them, else one of a quarter, each
 * phase another. */
unsigned kind_page(const struct writer *w, uint64_t random, unsigned phase);
/* The kernel writes straight into the page, with no fault at the time: by the manual of
 * open(2) a program must not fork meanwhile. */
int kind_is_direct(enum kind k);

/* Before the memory exists: helpers must not have it. 0, or why this kind cannot be had
 * here. `scratch`: a folder on a disk. */
const char *kind_prepare(struct writer *w, const char *scratch);
/* The memory is there. 0 or an errno. */
int kind_start(struct writer *w, char *memory);
/* Write. 0 or an errno. */
int kind_put(struct writer *w, unsigned page, const uint64_t *words);
void kind_end(struct writer *w);

#endif
