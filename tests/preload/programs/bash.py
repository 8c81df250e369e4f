# SPDX-License-Identifier: BSD-2-Clause
"""bash: pipelines, subshells, command and process substitution, jobs, traps, big strings."""
SCRIPT = r'''
set -u
echo one two three | tr ' ' '\n' | sort -r | while read -r w; do echo "word $w"; done
x=$( (echo inner; (echo innermost | sed s/inner/deep/)) | cat -n); echo "$x"
for i in $(seq 60); do y=$( (echo "$i" | cat) | cat); [ "$y" = "$i" ] || echo "lost $i $y"; done
diff <(seq 1 2000) <(seq 1 2000 | sed 's/^1999$/x/')
s=; for i in $(seq 3000); do s+="line $i of a long string "; done; echo ${#s}; echo "$s" | cksum
declare -A map; for i in $(seq 3000); do map[key$i]=$((i * i)); done; echo ${#map[@]} ${map[key777]}
a=( $(seq 5000) ); echo ${#a[@]} ${a[@]: -1}; unset 'a[10]'; echo ${#a[@]}
p=; for i in 1 2 3 4; do (sleep 0.0$i; exit $i) & p+=" $!"; done; for j in $p; do wait "$j"; echo "job $?"; done
trap 'echo on exit' EXIT; trap 'echo got USR1' USR1; kill -USR1 $$
coproc CAT { cat; }; echo through >&"${CAT[1]}"; read -r -u "${CAT[0]}" l; echo "$l"; eval "exec ${CAT[1]}>&-"; wait
f() { local n=$1; (( n == 0 )) && return 7; f $((n - 1)); }; f 200; echo "deep $?"
cat <<END | md5sum
$(for i in $(seq 500); do echo "here $i"; done)
END
(kill -SEGV $BASHPID) 2>/dev/null; echo "signal $?"
bash -c 'exec bash -c "exec bash -c \"echo nested; exit 3\""'; echo "status $?"
/bin/sh -c 'echo dash; ulimit -c; exit 4'; echo "dash $?"
mapfile -t lines < <(seq 20000 | shuf --random-source=<(yes) | sort -n); echo ${#lines[@]} ${lines[19999]}
LC_ALL=C; printf -v big '%*s' 30000 ''; big+=$big$big; echo ${#big}; printf -v big '%*s' 60000 ''; echo ${#big}; big=${big// /ab}; echo ${#big}
exit 5
'''


def run(ctx):
    ctx.run(['bash', '-c', SCRIPT], keep_stderr=False)
    ctx.run(['bash', '-c', 'no_such_command; cat /no/such/file; exit 9'])
