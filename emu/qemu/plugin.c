/* SPDX-License-Identifier: BSD-2-Clause
 * The front end for unmodified programs: a plugin of QEMU's user mode. Each block of guest
 * code adds its instructions, each load and store goes to the core, system calls to
 * syscalls.c. */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "core/core.h"
#include "settings/settings.h"
#include "program/start.h"
#include "qemu/cpu_table.h"
#include "qemu/exec.h"
#include "qemu/guest.h"
#include "qemu/plugin_api.h"
#include "qemu/syscalls.h"
#include "qemu/threads.h"

#define EXPORT __attribute__((visibility("default")))

/* Bytes that a processor's string instruction copies or fills while it would execute one
 * other instruction. */
#define STRING_BYTES 32

EXPORT int qemu_plugin_version = QEMU_PLUGIN_API;

static int64_t instruction_step; /* on emu_thread.left */
static uint32_t store_bits;      /* in what a memory call-out is told */

/* --- call-outs of guest code ------------------------------------------------ */

static void spent(unsigned vcpu)
{
    if (!threads_first_block(vcpu))
        emu_budget_spent();
}

static void on_block(unsigned vcpu, void *instructions)
{
    struct emu_thread *t = &emu_self;
    int64_t n = (int64_t)(intptr_t)instructions;

    t->instructions += (uint64_t)n;
    if (!EMU_LIKELY((t->left -= n * instruction_step) >= 0))
        spent(vcpu);
}

/* One more round of a repeated string instruction, of so many ps. */
static void on_string(unsigned vcpu, void *ps)
{
    struct emu_thread *t = &emu_self;

    if (!EMU_LIKELY((t->left -= (int64_t)(intptr_t)ps << EMU_COUNT_BITS) >= 0))
        spent(vcpu);
}

/* Before an instruction that others may take as a sign from this thread. */
static void on_locked(unsigned vcpu, void *unused)
{
    (void)vcpu;
    (void)unused;
    emu_settle_debt();
}

static void on_access(unsigned vcpu, uint32_t info, uint64_t address, void *unused)
{
    const volatile char *a =
        (const volatile char *)address; /* NOLINT: guests' addresses are ours */
    unsigned write = (info & store_bits) != 0;

    (void)vcpu;
    (void)unused;
    emu_touch(a, write);
    /* No access is larger than 8 bytes: vectors come in parts. */
    if (!EMU_LIKELY((address & 63) <= 56) &&
        (address & 63) + (1u << qemu_plugin_mem_size_shift(info)) > 64)
        emu_touch(a + 8, write);
}

/* --- translation ------------------------------------------------------------ */

struct decoded {
    bool locked;
    unsigned string_bytes; /* of one round of a repeated copy or fill; 0: another */
};

static bool is_prefix(uint8_t b)
{
    return b == 0x66 || b == 0x67 || b == 0x2e || b == 0x36 || b == 0x3e || b == 0x26 ||
           b == 0x64 || b == 0x65 || b == 0xf0 || b == 0xf2 || b == 0xf3;
}

/* As much of x86-64 as is needed: the prefixes, xchg with memory, movs and stos. */
static struct decoded decode(const uint8_t *p, size_t n)
{
    struct decoded d = {false, 0};
    bool repeated = false, wide = false, half = false;
    size_t i = 0;

    for (; i < n && is_prefix(p[i]); i++) {
        d.locked |= p[i] == 0xf0;
        repeated |= p[i] == 0xf2 || p[i] == 0xf3;
        half |= p[i] == 0x66;
    }
    if (i < n && (p[i] & 0xf0) == 0x40)
        wide = (p[i++] & 8) != 0;
    if (i >= n)
        return d;
    if ((p[i] == 0x86 || p[i] == 0x87) && i + 1 < n && p[i + 1] >> 6 != 3)
        d.locked = true;
    if (repeated && (p[i] == 0xa4 || p[i] == 0xaa))
        d.string_bytes = 1;
    if (repeated && (p[i] == 0xa5 || p[i] == 0xab))
        d.string_bytes = wide ? 8 : half ? 2 : 4;
    return d;
}

static void on_first_translation(void)
{
    static bool done;

    if (done)
        return;
    done = true;
    if (guest_base != 0)
        emu_refuse("QEMU has moved the program's memory by %#lx, which is not supported; is there "
                   "a limit on address space (ulimit -v) or QEMU_GUEST_BASE?",
                   guest_base);
    exec_loaded();
}

static void on_translation(qemu_plugin_id id, struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    unsigned string_bytes = 0;

    (void)id;
    on_first_translation();
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        struct decoded d = decode(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
        if (d.locked)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_locked, QEMU_PLUGIN_NO_REGS, NULL);
        /* One for both kinds: of two, QEMU 7.2 calls only the first at some accesses. */
        qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_NO_REGS,
                                         QEMU_PLUGIN_READ_WRITE, NULL);
        string_bytes = d.string_bytes;
    }
    /* Its later rounds are a block of their own each. */
    if (n == 1 && string_bytes)
        qemu_plugin_register_vcpu_tb_exec_cb(
            tb, on_string, QEMU_PLUGIN_NO_REGS,
            (void *)(intptr_t)(emu_core_params()->instruction_ps * string_bytes / STRING_BYTES));
    else
        qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_NO_REGS,
                                             (void *)(intptr_t)n); /* NOLINT: a number */
}

/* --- threads, system calls, the end ------------------------------------------ */

static void on_vcpu(qemu_plugin_id id, unsigned vcpu)
{
    (void)id;
    threads_vcpu_made(vcpu);
}

static void on_syscall(qemu_plugin_id id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2,
                       uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    uint64_t arg[6] = {a1, a2, a3, a4, a5, a6};
    (void)id;
    (void)vcpu;
    (void)a7;
    (void)a8;
    syscalls_enter(number, arg);
}

static void on_syscall_return(qemu_plugin_id id, unsigned vcpu, int64_t number, int64_t result)
{
    (void)id;
    (void)vcpu;
    syscalls_leave(number, result);
}

static void on_exit(qemu_plugin_id id, void *unused)
{
    (void)id;
    (void)unused;
    guest_back(emu_now()); /* exit_group has waited for nothing that has a time */
    emu_finish();
}

EXPORT int qemu_plugin_install(qemu_plugin_id id, const struct qemu_plugin_info *info, int argc,
                               char **argv)
{
    if (info->system_emulation || strcmp(info->target, "x86_64") != 0)
        emu_refuse("only programs for x86-64 under QEMU's user mode, not %s%s", info->target,
                   info->system_emulation ? " machines" : "");
    exec_options(argc, argv);
    cpu_table_watch();
    threads_start();
    emu_clock_waits_told = true;
    emu_start(true);
    emu_access_step = -1; /* accesses are counted; time is that of instructions */
    instruction_step = emu_core_params()->instruction_ps << EMU_COUNT_BITS;
    for (unsigned bit = 0; bit < 32; bit++)
        if (qemu_plugin_mem_is_store(1u << bit))
            store_bits |= 1u << bit;
    pthread_atfork(NULL, NULL, threads_forked);
    qemu_plugin_register_vcpu_init_cb(id, on_vcpu);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_return);
    qemu_plugin_register_atexit_cb(id, on_exit, NULL);
    return 0;
}
