/* SPDX-License-Identifier: BSD-2-Clause
 * The kernel reads and writes heap blocks: no call fails or loses data because of
 * where they lie. Pipes, files, O_DIRECT, vectors, process-shared locks, vmsplice, process_vm_readv. */
#include "victim.h"

#include <sys/socket.h>
#include <sys/uio.h>

#define MIB ((size_t)1 << 20)

static void *writer(void *arg)
{
    char *p = malloc(3 * MIB);
    fill(p, 3 * MIB, 4);
    for (size_t at = 0; at < 3 * MIB;) {
        ssize_t n = write(*(int *)arg, p + at, 3 * MIB - at);
        CHECK(n > 0);
        at += (size_t)n;
    }
    free(p);
    return NULL;
}

static void through_pipe(void)
{
    int fd[2];
    CHECK(pipe(fd) == 0);
    pthread_t t;
    CHECK(pthread_create(&t, NULL, writer, &fd[1]) == 0);
    char *p = malloc(3 * MIB);
    for (size_t at = 0; at < 3 * MIB;) {
        ssize_t n = read(fd[0], p + at, 3 * MIB - at);
        CHECK(n > 0);
        at += (size_t)n;
    }
    CHECK(pthread_join(t, NULL) == 0 && holds(p, 3 * MIB, 4));
    struct iovec v = {p, 8192};
    ssize_t n = vmsplice(fd[1], &v, 1, 0);
    CHECK(n == 8192);
    char *q = malloc(8192);
    CHECK(read(fd[0], q, 8192) == 8192 && memcmp(p, q, 8192) == 0);
    free(p);
    free(q);
    close(fd[0]);
    close(fd[1]);
}

static void files(void)
{
    char name[] = "io-XXXXXX";
    int fd = mkstemp(name), direct = open(name, O_RDWR | O_DIRECT);
    CHECK(fd >= 0);
    unlink(name);
    char *p;
    CHECK(posix_memalign((void **)&p, 4096, 4 * MIB) == 0);
    fill(p, 4 * MIB, 8);
    int out = direct >= 0 ? direct : fd; /* tmpfs of older kernels has no O_DIRECT */
    CHECK(pwrite(out, p, 4 * MIB, 0) == (ssize_t)(4 * MIB));
    memset(p, 0, 4 * MIB);
    CHECK(pread(out, p, 4 * MIB, 0) == (ssize_t)(4 * MIB) && holds(p, 4 * MIB, 8));
    char *a = malloc(1000), *b = calloc(1, 200000);
    struct iovec v[2] = {{a, 1000}, {b, 200000}};
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && readv(fd, v, 2) == 201000);
    CHECK(memcmp(a, p, 1000) == 0 && memcmp(b, p + 1000, 200000) == 0);
    struct iovec from = {p, 100000}, to = {b, 100000};
    ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    if (n == 100000)
        CHECK(memcmp(b, p, 100000) == 0);
    free(a);
    free(b);
    free(p);
    close(fd);
    if (direct >= 0)
        close(direct);
}

static void shared_lock(void)
{
    struct shared {
        pthread_mutex_t m;
        int n;
    } *s = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(s != MAP_FAILED);
    pthread_mutexattr_t a;
    CHECK(pthread_mutexattr_init(&a) == 0 && pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED) == 0);
    CHECK(pthread_mutex_init(&s->m, &a) == 0);
    pid_t pid[4];
    for (int i = 0; i < 4; i++)
        if ((pid[i] = fork()) == 0) {
            for (int k = 0; k < 2000; k++) {
                pthread_mutex_lock(&s->m);
                s->n++;
                pthread_mutex_unlock(&s->m);
            }
            _exit(0);
        }
    for (int i = 0; i < 4; i++)
        CHECK(reap(pid[i]) == 0);
    CHECK(s->n == 8000);
    pthread_mutex_t *in_heap = malloc(sizeof *in_heap); /* a private futex in a block */
    pthread_mutex_init(in_heap, NULL);
    pthread_mutex_lock(in_heap);
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    CHECK(pthread_mutex_timedlock(in_heap, &soon) == ETIMEDOUT);
    pthread_mutex_unlock(in_heap);
    free(in_heap);
}

int main(void)
{
    for (int i = 0; i < 3; i++)
        through_pipe();
    files();
    shared_lock();
    int sv[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0);
    char *p = malloc(60000), *q = malloc(60000);
    fill(p, 60000, 5);
    CHECK(send(sv[0], p, 60000, 0) == 60000 && recv(sv[1], q, 60000, MSG_WAITALL) == 60000 && holds(q, 60000, 5));
    puts("ok");
    return 0;
}
