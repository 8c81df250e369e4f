/* SPDX-License-Identifier: BSD-2-Clause
 * What this front end uses of QEMU's interface for TCG plugins, version 1 (QEMU 4.2 to 8.2).
 * Declared here as Debian's qemu-user exports the functions and ships no header. */
#ifndef EMU_QEMU_PLUGIN_API_H
#define EMU_QEMU_PLUGIN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_PLUGIN_API 1

typedef uint64_t qemu_plugin_id;
struct qemu_plugin_tb;   /* a block being translated */
struct qemu_plugin_insn; /* one instruction of it */

enum qemu_plugin_regs { QEMU_PLUGIN_NO_REGS };
enum qemu_plugin_rw { QEMU_PLUGIN_READ = 1, QEMU_PLUGIN_WRITE, QEMU_PLUGIN_READ_WRITE };

struct qemu_plugin_info {
    const char *target; /* "x86_64" */
    struct {
        int min, cur;
    } version;
    bool system_emulation;
};

typedef void qemu_plugin_vcpu_fn(qemu_plugin_id id, unsigned vcpu);
typedef void qemu_plugin_tb_fn(qemu_plugin_id id, struct qemu_plugin_tb *tb);
typedef void qemu_plugin_exec_fn(unsigned vcpu, void *data);
typedef void qemu_plugin_mem_fn(unsigned vcpu, uint32_t info, uint64_t address, void *data);
typedef void qemu_plugin_exit_fn(qemu_plugin_id id, void *data);
typedef void qemu_plugin_syscall_fn(qemu_plugin_id id, unsigned vcpu, int64_t number, uint64_t a1,
                                    uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
                                    uint64_t a7, uint64_t a8);
typedef void qemu_plugin_syscall_ret_fn(qemu_plugin_id id, unsigned vcpu, int64_t number,
                                        int64_t result);

/* The plugin's own. */
int qemu_plugin_install(qemu_plugin_id id, const struct qemu_plugin_info *info, int argc,
                        char **argv);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id id, qemu_plugin_vcpu_fn *f);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id id, qemu_plugin_tb_fn *f);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id id, qemu_plugin_syscall_fn *f);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id id, qemu_plugin_syscall_ret_fn *f);
void qemu_plugin_register_atexit_cb(qemu_plugin_id id, qemu_plugin_exit_fn *f, void *data);

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_exec_fn *f,
                                          enum qemu_plugin_regs regs, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_exec_fn *f,
                                            enum qemu_plugin_regs regs, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_plugin_mem_fn *f,
                                      enum qemu_plugin_regs regs, enum qemu_plugin_rw rw,
                                      void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
bool qemu_plugin_mem_is_store(uint32_t info);
unsigned qemu_plugin_mem_size_shift(uint32_t info);
/* Not before the first vcpu is there. */
const char *qemu_plugin_path_to_binary(void);

/* QEMU's: what is added to a guest's address. */
extern uintptr_t guest_base;

#endif
