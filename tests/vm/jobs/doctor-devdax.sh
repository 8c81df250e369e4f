# SPDX-License-Identifier: BSD-2-Clause
# Persistent memory that nobody gave to the system: the doctor tells the command
# that does, and it works.
. ./check.sh
advice="daxctl reconfigure-device --mode=system-ram dax0.0"
check "doctor: passive" status 1 ./hybridctl doctor
check "doctor tells the command" says "$advice" ./hybridctl doctor
check "the command" $advice
check "doctor: can place now" status 0 ./hybridctl doctor
exit $failed
