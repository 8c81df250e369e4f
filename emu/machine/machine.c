/* SPDX-License-Identifier: BSD-2-Clause
 * Shared state and who is on it. See machine.h.
 *
 * The file is locked (flock) only while somebody comes or goes; the kernel drops the
 * lock of a dead process. No descriptor stays open: a program may close them all. */
#include "machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAGIC 0x656e696863616d65u /* "emachine" */
/* Also differs whenever the layout does. */
#define VERSION ((uint64_t)2 << 32 | sizeof(struct emu_machine))

static size_t bytes_of(const struct emu_params *p)
{
    size_t slots = (size_t)emu_llc_sets((uint32_t)p->llc_kb) * EMU_LLC_WAYS;
    return sizeof(struct emu_machine) + slots * sizeof(uint64_t);
}

/* Field 22 of /proc/PID/stat; 0: no such process. */
static int64_t born(int pid)
{
    char path[32], buf[512], *p;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, buf, sizeof(buf) - 1);
    close(fd);
    if (n <= 0)
        return 0;
    buf[n] = '\0';
    p = strrchr(buf, ')');
    if (!p || p[1] != ' ' || p[2] == 'Z' || p[2] == 'X')
        return 0;
    for (int field = 2; field < 22 && p; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoll(p + 1, NULL, 10) : 0;
}

/* Who was killed between taking the slot and telling its birth has left none there. */
static bool lives(const struct emu_process *p, int32_t pid)
{
    int64_t told = atomic_load(&p->born), is = born(pid);
    return is != 0 && (told == 0 || told == is);
}

/* Free the slots of processes that are gone, and those of this process' number: it has
 * called exec. How many live ones are left. */
static int sweep(struct emu_machine *m, const struct emu_process *self)
{
    int alive = 0;
    for (int i = 0; i < EMU_PROCESSES; i++) {
        struct emu_process *p = &m->process[i];
        int32_t pid = atomic_load(&p->pid);
        if (pid == 0 || p == self)
            continue;
        if (pid != getpid() && lives(p, pid)) {
            alive++;
            continue;
        }
        emu_clock_forget(&m->clock, pid);
        atomic_store(&p->born, 0);
        atomic_compare_exchange_strong(&p->pid, &pid, 0);
    }
    return alive;
}

int emu_machine_join(struct emu_machine *m, struct emu_process **ret_self)
{
    for (int i = 0; i < EMU_PROCESSES; i++) {
        struct emu_process *p = &m->process[i];
        int32_t none = 0;
        int64_t now;
        if (!atomic_compare_exchange_strong(&p->pid, &none, (int32_t)getpid()))
            continue;
        now = emu_clock_floor(&m->clock);
        for (int t = 0; t < EMU_TIERS; t++)
            atomic_store(&p->pages[t], 0);
        atomic_store(&p->born, born(getpid()));
        atomic_store(&p->serial, atomic_fetch_add(&m->serials, 1) + 1);
        atomic_store(&p->begin, now);
        atomic_store(&p->end, now);
        for (int c = 0; c < EMU_COUNTER_COUNT; c++)
            atomic_store(&p->count[c], 0);
        *ret_self = p;
        return 0;
    }
    return -EUSERS;
}

/* By system call: mmap of this process may be the interposed one. */
static int map(size_t bytes, int flags, int fd, struct emu_machine **ret)
{
    long r = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0L);
    if (r == -1)
        return -errno;
    *ret = (struct emu_machine *)r; /* NOLINT: the kernel's address */
    return 0;
}

static void set_up(struct emu_machine *m, const struct emu_params *p)
{
    m->version = VERSION;
    m->bytes = bytes_of(p);
    m->params = *p;
    emu_cpus_init(&m->cpus, (int)p->cpus);
    m->magic = MAGIC;
}

static int check(const struct emu_machine *m, size_t file_bytes, const struct emu_params *p)
{
    if (m->magic != MAGIC || m->version != VERSION || file_bytes < m->bytes)
        return -EPERM;
    return m->bytes == bytes_of(p) && memcmp(&m->params, p, sizeof(*p)) == 0 ? 0 : -EINVAL;
}

/* The mapping keeps the open file, and with it the lock, beyond close. */
static void close_unlocked(int fd)
{
    flock(fd, LOCK_UN);
    close(fd);
}

/* Open and lock the file that has this name now (the last one to leave may just
 * have removed the one that was opened). */
static int open_locked(const char *path, int flags, struct stat *ret_st)
{
    for (int tries = 0; tries < 100; tries++) {
        struct stat st, named;
        int fd = open(path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600), e;
        if (fd < 0)
            return -errno;
        if (flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0) {
            if (stat(path, &named) == 0 && named.st_ino == st.st_ino && named.st_dev == st.st_dev) {
                *ret_st = st;
                return fd;
            }
            errno = EAGAIN;
        }
        e = errno;
        close(fd);
        if (e != EAGAIN && e != EINTR)
            return -e;
    }
    return -EAGAIN;
}

static int attach_file(const char *path, const struct emu_params *p, struct emu_machine **ret,
                       struct emu_process **ret_self)
{
    struct emu_machine *m = NULL;
    size_t bytes = bytes_of(p);
    struct stat st;
    int fd = open_locked(path, O_CREAT, &st), r = 0;

    if (fd < 0)
        return fd;
    if (!S_ISREG(st.st_mode) || (st.st_size != 0 && (size_t)st.st_size < sizeof(*m)))
        r = -EPERM;
    /* Blocks now: a full /dev/shm is an error here, not a SIGBUS later. */
    else if (st.st_size == 0 && (r = posix_fallocate(fd, 0, (off_t)bytes)) != 0)
        r = -r;
    else
        r = map(st.st_size ? (size_t)st.st_size : bytes, MAP_SHARED, fd, &m);
    if (r == 0 && st.st_size == 0)
        set_up(m, p);
    if (r == 0)
        r = check(m, st.st_size ? (size_t)st.st_size : bytes, p);
    if (r == 0) {
        sweep(m, NULL);
        r = emu_machine_join(m, ret_self);
    }
    if (r == 0)
        *ret = m;
    else if (st.st_size == 0)
        unlink(path);
    close_unlocked(fd);
    return r;
}

int emu_machine_attach(const char *path, const struct emu_params *p, struct emu_machine **ret,
                       struct emu_process **ret_self)
{
    struct emu_machine *m = NULL;
    int r;

    if (path)
        return attach_file(path, p, ret, ret_self);
    r = map(bytes_of(p), MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, &m);
    if (r < 0)
        return r;
    set_up(m, p);
    *ret = m;
    return emu_machine_join(m, ret_self);
}

void emu_machine_reclaim(struct emu_machine *m, const struct emu_process *self, const char *path)
{
    struct stat st;
    int fd = path ? open_locked(path, 0, &st) : -1;

    (void)sweep(m, self);
    if (fd >= 0)
        close_unlocked(fd);
}

void emu_machine_leave(struct emu_machine *m, struct emu_process *self, const char *path)
{
    struct stat st;
    int fd = path ? open_locked(path, 0, &st) : -1;

    emu_clock_forget(&m->clock, getpid());
    atomic_store(&self->born, 0);
    atomic_store(&self->pid, 0);
    if (fd < 0)
        return;
    if (sweep(m, self) == 0)
        unlink(path);
    close_unlocked(fd);
}

bool emu_process_alive(const struct emu_process *p)
{
    int32_t pid = atomic_load(&p->pid);
    return pid != 0 && lives(p, pid);
}

/* The file as it is now; the lock stays with the caller. */
static int map_existing(const char *path, int *ret_fd, struct emu_machine **ret)
{
    struct stat st;
    int fd = open_locked(path, 0, &st), r = -EPERM;

    if (fd < 0)
        return fd;
    if (S_ISREG(st.st_mode) && (size_t)st.st_size >= sizeof(struct emu_machine))
        r = map((size_t)st.st_size, MAP_SHARED, fd, ret);
    if (r == 0 && check(*ret, (size_t)st.st_size, &(*ret)->params) < 0) {
        syscall(SYS_munmap, *ret, st.st_size);
        r = -EPERM;
    }
    if (r < 0)
        close_unlocked(fd);
    else
        *ret_fd = fd;
    return r;
}

int emu_machine_look(const char *path, const struct emu_machine **ret)
{
    struct emu_machine *m;
    int fd, r = map_existing(path, &fd, &m);

    if (r < 0)
        return r;
    close_unlocked(fd);
    *ret = m;
    return 0;
}

int emu_machine_tidy(const char *path)
{
    struct emu_machine *m;
    int fd, r = map_existing(path, &fd, &m);

    if (r < 0)
        return r;
    r = sweep(m, NULL);
    if (r == 0)
        unlink(path);
    close_unlocked(fd);
    syscall(SYS_munmap, m, m->bytes);
    return r;
}
