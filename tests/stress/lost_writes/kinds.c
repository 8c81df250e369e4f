/* SPDX-License-Identifier: BSD-2-Clause */
#include "kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring.h"

enum { BLOCKS = 64 }; /* different ones in the file of the direct reads */

const char *const kind_names[KINDS] = {
    [PLAIN] = "plain stores",
    [VECTOR16] = "16-byte vector stores",
    [VECTOR32] = "32-byte vector stores",
    [STREAMING] = "non-temporal stores",
    [STRING] = "string instructions",
    [READ] = "read",
    [RECV] = "recv",
    [SPLICED] = "readv of what was vmspliced",
    [URING] = "io_uring read",
    [URING_DIRECT] = "io_uring O_DIRECT read",
    [URING_FIXED] = "io_uring read into a fixed buffer",
    [VM_WRITEV] = "process_vm_writev",
    [VM_WRITEV_OTHER] = "process_vm_writev by another process",
    [PROC_MEM] = "/proc/self/mem",
    [DIRECT] = "O_DIRECT read",
};

int kind_is_direct(enum kind k)
{
    return k == DIRECT || k == URING_DIRECT;
}

void kind_fill(const struct writer *w, unsigned page, uint32_t value, uint64_t *words)
{
    uint64_t what = kind_is_direct(w->kind) ? value % BLOCKS : (uint64_t)value * PAGES + page;
    for (unsigned i = 0; i < WORDS; i++)
        words[i] = value ? (what << 16 | (uint64_t)w->kind << 8 | i) * 0x9e3779b97f4a7c15u : 0;
}

char *kind_slot(const struct writer *w, unsigned page)
{
    return w->memory + page * PAGE + w->kind % (SLOTS - 1) * SLOT; /* the last is for atomics */
}

/* Every page has as many kinds as it has slots. */
unsigned kind_page(const struct writer *w, uint64_t random, unsigned phase)
{
    enum { GROUPS = (KINDS + SLOTS - 2) / (SLOTS - 1), EACH = (PAGES - PINNED) / GROUPS };
    if (w->kind == URING_FIXED)
        return (unsigned)(random % PINNED);
    unsigned n =
        phase ? (phase % 4 * EACH + (unsigned)(random % EACH)) / 4 : (unsigned)(random % EACH);
    return PINNED + n * GROUPS + w->kind / (SLOTS - 1);
}

/* --- getting ready --------------------------------------------------------------- */

static const char *open_blocks(struct writer *w, const char *scratch)
{
    struct statfs fs;
    uint64_t words[WORDS];
    char path[512];
    snprintf(path, sizeof(path), "%s/lost_writes.XXXXXX", scratch);
    int fd = mkstemp(path);
    if (fd < 0)
        return "the scratch folder cannot be written";
    w->fd[0] = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    unlink(path);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        kind_fill(w, 0, BLOCKS + i, words);
        if (pwrite(fd, words, SLOT, i * SLOT) != SLOT)
            return "the scratch folder is full";
    }
    fsync(fd);
    close(fd);
    if (w->fd[0] < 0 || fstatfs(w->fd[0], &fs) || fs.f_type == TMPFS_MAGIC ||
        pread(w->fd[0], w->block, SLOT, 0) != SLOT)
        return "the scratch folder's file system has no O_DIRECT";
    return NULL;
}

/* Reads orders (where, what) from a pipe and carries them out in its parent. */
static void help(int orders, int answers)
{
    struct {
        char *at;
        uint64_t words[WORDS];
    } order;
    pid_t parent = getppid();
    while (read(orders, &order, sizeof(order)) == sizeof(order)) {
        struct iovec from = {order.words, SLOT}, to = {order.at, SLOT};
        int e = process_vm_writev(parent, &from, 1, &to, 1, 0) == SLOT ? 0 : errno;
        if (write(answers, &e, sizeof(e)) != sizeof(e))
            break;
    }
    _exit(0);
}

static const char *start_helper(struct writer *w)
{
    int orders[2], answers[2];
    if (pipe2(orders, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
        return "no pipe";
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    w->helper = fork();
    if (w->helper == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(orders[1]);
        close(answers[0]);
        help(orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    w->fd[0] = answers[0];
    w->fd[1] = orders[1];
    return w->helper < 0 ? "no process" : NULL;
}

const char *kind_prepare(struct writer *w, const char *scratch)
{
    const char *missing = NULL;
    w->fd[0] = w->fd[1] = -1;
    w->block = aligned_alloc(PAGE, PAGE);
    if (w->kind == URING || w->kind == URING_DIRECT || w->kind == URING_FIXED)
        w->ring = ring_open();
    if (!w->ring && (w->kind == URING || w->kind == URING_DIRECT || w->kind == URING_FIXED))
        return "no io_uring here";
    if (kind_is_direct(w->kind))
        missing = open_blocks(w, scratch);
    else if (w->kind == VM_WRITEV_OTHER)
        missing = start_helper(w);
    else if (w->kind == PROC_MEM)
        missing = (w->fd[0] = open("/proc/self/mem", O_RDWR | O_CLOEXEC)) < 0 ? "no /proc" : NULL;
    else if (w->kind == RECV)
        missing = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w->fd) ? "no socket" : NULL;
    else
        missing = pipe2(w->fd, O_CLOEXEC) ? "no pipe" : NULL;
    return missing;
}

int kind_start(struct writer *w, char *memory)
{
    w->memory = memory;
    return w->kind == URING_FIXED ? ring_register(w->ring, memory, PINNED * PAGE) : 0;
}

void kind_end(struct writer *w)
{
    if (w->fd[0] >= 0)
        close(w->fd[0]);
    if (w->fd[1] >= 0)
        close(w->fd[1]);
    if (w->ring)
        ring_close(w->ring);
    if (w->helper > 0)
        waitpid(w->helper, NULL, 0);
    free(w->block);
}

/* --- stores ------------------------------------------------------------------------ */

typedef uint64_t vector16 __attribute__((vector_size(16)));

static void put_vector16(char *to, const uint64_t *words)
{
    for (unsigned i = 0; i < SLOT / 16; i++)
        ((volatile vector16 *)to)[i] = ((const vector16 *)words)[i];
}

#ifdef __x86_64__
typedef uint64_t vector32 __attribute__((vector_size(32)));

__attribute__((target("avx"))) static void put_vector32(char *to, const uint64_t *words)
{
    for (unsigned i = 0; i < SLOT / 32; i++)
        ((volatile vector32 *)to)[i] = ((const vector32 *)words)[i];
}

static void put_stores(enum kind k, char *to, const uint64_t *words)
{
    size_t n = SLOT;
    if (k == VECTOR32 && __builtin_cpu_supports("avx")) {
        put_vector32(to, words);
    } else if (k == VECTOR16 || k == VECTOR32) {
        put_vector16(to, words);
    } else if (k == STREAMING) {
        for (unsigned i = 0; i < WORDS; i++)
            __builtin_ia32_movnti64((long long *)to + i, (long long)words[i]);
        __builtin_ia32_sfence();
    } else {
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(words), "+c"(n) : : "memory");
    }
}
#else
static void put_stores(enum kind k, char *to, const uint64_t *words)
{
    (void)k;
    put_vector16(to, words);
}
#endif

/* --- system calls ---------------------------------------------------------------- */

static int put_by_other(struct writer *w, char *to, const uint64_t *words)
{
    char order[sizeof(to) + SLOT];
    int e = EPIPE;
    memcpy(order, &to, sizeof(to));
    memcpy(order + sizeof(to), words, SLOT);
    if (write(w->fd[1], order, sizeof(order)) != sizeof(order) ||
        read(w->fd[0], &e, sizeof(e)) != sizeof(e))
        return EPIPE;
    return e;
}

/* The pipe holds the page of the block itself, no copy. */
static int put_spliced(struct writer *w, char *to, const uint64_t *words)
{
    struct iovec from = {w->block, SLOT}, dest = {to, SLOT};
    memcpy(w->block, words, SLOT);
    if (vmsplice(w->fd[1], &from, 1, 0) != SLOT)
        return errno;
    return readv(w->fd[0], &dest, 1) == SLOT ? 0 : errno;
}

static int full(ssize_t n)
{
    return n == SLOT ? 0 : n < 0 ? errno : EIO;
}

int kind_put(struct writer *w, unsigned page, const uint64_t *words)
{
    char *to = kind_slot(w, page);
    struct iovec from = {(void *)words, SLOT}, dest = {to, SLOT};
    off_t block = w->last[page] % BLOCKS * SLOT;
    int n;
    if (w->kind == READ || w->kind == RECV || w->kind == URING || w->kind == URING_FIXED)
        if (write(w->fd[1], words, SLOT) != SLOT)
            return errno;
    switch (w->kind) {
    case PLAIN:
        for (unsigned i = 0; i < WORDS; i++)
            ((volatile uint64_t *)to)[i] = words[i];
        return 0;
    case READ:
        return full(read(w->fd[0], to, SLOT));
    case RECV:
        return full(recv(w->fd[0], to, SLOT, MSG_WAITALL));
    case SPLICED:
        return put_spliced(w, to, words);
    case URING:
    case URING_FIXED:
        n = ring_read(w->ring, w->fd[0], to, SLOT, 0, w->kind == URING_FIXED);
        return n < 0 ? -n : full(n);
    case URING_DIRECT:
        n = ring_read(w->ring, w->fd[0], to, SLOT, block, 0);
        return n < 0 ? -n : full(n);
    case VM_WRITEV:
        return full(process_vm_writev(getpid(), &from, 1, &dest, 1, 0));
    case VM_WRITEV_OTHER:
        return put_by_other(w, to, words);
    case PROC_MEM:
        return full(pwrite(w->fd[0], words, SLOT, (off_t)(uintptr_t)to));
    case DIRECT:
        return full(pread(w->fd[0], to, SLOT, block));
    default:
        put_stores(w->kind, to, words);
        return 0;
    }
}
