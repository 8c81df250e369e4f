#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check-man.sh GROFF PAGE...: groff has nothing to complain about, and no line is too long to read.
groff=$1
shift
status=0
for page; do
    complaints=$("$groff" -man -Tutf8 -ww -rLL=100n -z "$page" 2>&1)
    if [ -n "$complaints" ]; then
        echo "$page: $complaints"
        status=1
    fi
    "$groff" -man -Tascii -P-cbou "$page" | grep -q '^NAME' || {
        echo "$page: no NAME section is rendered"
        status=1
    }
done
exit $status
