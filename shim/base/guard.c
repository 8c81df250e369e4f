/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/guard.h"

__thread int hy_guard_depth __attribute__((tls_model("initial-exec")));
