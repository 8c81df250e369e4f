# SPDX-License-Identifier: BSD-2-Clause
"""git: commits with fixed dates (so their names are comparable), clone, gc, fsck, diff, rebase."""
import harness

SCRIPT = r'''
set -e
git config --global user.name T; git config --global user.email t@example.org
git config --global init.defaultBranch main; git config --global gc.autoDetach false
git init -q repo; cd repo
for c in $(seq 12); do
    mkdir -p d$((c % 4))
    for f in 1 2 3 4 5; do seq $((c * f)) $((c * 300 + f * 100)) > d$((c % 4))/f$f; done
    git add -A; git commit -q -m "commit $c"
    if [ $((c % 5)) = 0 ]; then git branch b$c; fi
done
git rev-parse HEAD; git diff --stat HEAD~3 HEAD | tail -2; git diff HEAD~5 | cksum
git log --oneline | wc -l; git log -p --all | cksum
git checkout -q -b side HEAD~4; echo side > s; git add s; git commit -q -m side; git rebase -q main
git rev-parse HEAD; git checkout -q main; git merge -q side; git rev-parse HEAD
git blame d1/f3 | cksum; git grep -c 777 | head -3
git repack -q -a -d -f --threads=2 --window=20; git gc -q --prune=now --aggressive; git fsck --full --strict
git clone -q "file://$PWD" ../clone; cd ../clone; git rev-parse HEAD; git fsck --full
git archive HEAD | tar -t | wc -l; git bundle create -q ../b.bundle --all; git bundle verify -q ../b.bundle
git stash list; echo x >> s; git stash -q; git stash pop | tail -1 | cut -c1-7; git status --short
git show HEAD:no/such || echo "status $?"
'''


def run(ctx):
    harness.need('git')
    ctx.run(['bash', '-c', SCRIPT], timeout=300,
            env={'GIT_AUTHOR_DATE': '1700000000 +0000', 'GIT_COMMITTER_DATE': '1700000000 +0000',
                 'GIT_CONFIG_NOSYSTEM': '1'})
