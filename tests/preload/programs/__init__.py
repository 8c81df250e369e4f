# SPDX-License-Identifier: BSD-2-Clause
"""The programs, a module each."""

CASES = ['bash', 'coreutils', 'python', 'pymalloc', 'redis', 'memcached', 'sqlite', 'gcc', 'gxx', 'git',
         'perl', 'node', 'java', 'golang', 'rust', 'openmp', 'hpcc', 'gdb', 'openssl', 'nginx', 'jemalloc', 'php',
         'ruby']
# Larger ones, by scripts/test --long (packages-long.txt).
LONG_CASES = ['numpy', 'maxima', 'sbcl', 'erlang', 'r', 'postgres', 'mariadb', 'chromium', 'libreoffice', 'pypi']
