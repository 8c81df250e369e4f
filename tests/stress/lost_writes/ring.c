/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ENTRIES = 4 };

struct ring {
    int fd;
    char *rings; /* both queues, in one mapping */
    size_t bytes, sqe_bytes;
    struct io_uring_sqe *sqe;
    struct io_uring_params p;
};

static unsigned *field(const struct ring *r, unsigned offset)
{
    return (unsigned *)(void *)(r->rings + offset);
}

struct ring *ring_open(void)
{
    struct ring *r = calloc(1, sizeof(*r));
    r->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &r->p);
    if (r->fd < 0 || !(r->p.features & IORING_FEAT_SINGLE_MMAP)) {
        free(r);
        return NULL;
    }
    size_t sq = r->p.sq_off.array + r->p.sq_entries * sizeof(unsigned);
    size_t cq = r->p.cq_off.cqes + r->p.cq_entries * sizeof(struct io_uring_cqe);
    r->bytes = sq > cq ? sq : cq;
    r->sqe_bytes = r->p.sq_entries * sizeof(struct io_uring_sqe);
    r->rings = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd,
                    IORING_OFF_SQ_RING);
    void *sqes = mmap(NULL, r->sqe_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd,
                      IORING_OFF_SQES);
    if (r->rings == MAP_FAILED || sqes == MAP_FAILED)
        return NULL;
    r->sqe = sqes;
    return r;
}

void ring_close(struct ring *r)
{
    munmap(r->sqe, r->sqe_bytes);
    munmap(r->rings, r->bytes);
    close(r->fd);
    free(r);
}

int ring_register(struct ring *r, void *base, size_t bytes)
{
    struct iovec v = {base, bytes};
    return syscall(SYS_io_uring_register, r->fd, IORING_REGISTER_BUFFERS, &v, 1) ? errno : 0;
}

int ring_read(struct ring *r, int fd, void *to, unsigned bytes, off_t at, int fixed)
{
    unsigned mask = *field(r, r->p.sq_off.ring_mask);
    unsigned *tail = field(r, r->p.sq_off.tail), *head = field(r, r->p.cq_off.head);
    unsigned slot = *tail & mask;
    r->sqe[slot] = (struct io_uring_sqe){
        .opcode = fixed ? IORING_OP_READ_FIXED : IORING_OP_READ,
        .fd = fd,
        .off = (uint64_t)at,
        .addr = (uintptr_t)to,
        .len = bytes,
    };
    field(r, r->p.sq_off.array)[slot] = slot;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    unsigned submit = 1;
    for (;;) {
        long n = syscall(SYS_io_uring_enter, r->fd, submit, 1, IORING_ENTER_GETEVENTS, NULL, 0);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            submit = 0;
        if (__atomic_load_n(field(r, r->p.cq_off.tail), __ATOMIC_ACQUIRE) != *head)
            break;
    }
    const struct io_uring_cqe *cqe = (void *)(r->rings + r->p.cq_off.cqes);
    int result = cqe[*head & *field(r, r->p.cq_off.ring_mask)].res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result;
}
