# SPDX-License-Identifier: BSD-2-Clause
# Two programs and one budget of DRAM on a real kernel: what a bandwidth-sensitive newcomer wishes
# for is moved away from under a CPU-bound one, page by page; when the newcomer ends, the other's
# best pages come up again. Where pages are says the kernel (numa_maps), not the library.
. ./check.sh
shares="HYBRID_REGISTRY=/tmp/registry HYBRID_DRAM=32M HYBRID_DRAM_SHARED=32M"

drive holder 5 HYBRID_CLASS=cpu $shares
echo "big 28" >&5
check "a CPU-bound program has written its memory" waits $patience answers holder 1
check "it is on DRAM" waits $patience has holder 0 -ge 26
# Nobody waits for a claim of DRAM for longer than 0.1 s: on a busy computer some of it comes up later.
check "none of it on PM" waits $patience has holder 1 -le 1
drive newcomer 6 HYBRID_CLASS=bandwidth $shares
printf '%s\n' "big 20" "hot 0 16" >&6
check "a bandwidth-sensitive one comes" waits $patience answers newcomer 2
check "pages of the first one move to PM" waits $patience has holder 1 -ge 10
where holder newcomer
./hybridctl status --registry /tmp/registry | sed 's/^/     /'
check "the newcomer's come to DRAM" waits $patience has newcomer 0 -ge 14
where holder newcomer
echo calm >&6
exec 6>&-
check "it ends with all that it wrote" wait $newcomer
check "and has answered so" answers newcomer 3
echo "hot 0 28" >&5
check "what the first one uses now comes up again" waits $patience has holder 0 -ge 26
check "and leaves PM" waits $patience has holder 1 -le 1
where holder
echo calm >&5
exec 5>&-
check "it ends with all that it wrote" wait $holder
check "and has answered so" answers holder 3
for who in holder newcomer; do
    echo "     report of the $who: $(reported /tmp/$who.json up_bytes) bytes up, $(reported /tmp/$who.json down_bytes) down"
done
check "its report knows of the pages that went down" test "$(reported /tmp/holder.json down_bytes)" -ge $((10 << 20))
check "and up" test "$(reported /tmp/holder.json up_bytes)" -ge $((10 << 20))
exit $failed
