# SPDX-License-Identifier: BSD-2-Clause
# Page tracking in the ways that this kernel has.
. ./check.sh
case $(uname -r) in
6.1.*) ways=soft-dirty ;;
*) ways="scan soft-dirty" ;;
esac
for way in $ways; do
    check "writes are tracked by $way" ./test_track $way
done
check "histories from real stores" ./test_sampler_sources
exit $failed
