# SPDX-License-Identifier: BSD-2-Clause
"""R: vectors that are copied and collected, models, strings, child processes."""
import harness

SCRIPT = r'''
set.seed(7); x <- sample.int(1e6, 1e6, replace = TRUE)
cat(sum(sort(x) * seq_along(x) %% 97), length(unique(x)), "\n")
l <- lapply(1:3000, function(i) strrep("x", i %% 500)); cat(sum(nchar(unlist(l))), "\n"); rm(l); invisible(gc())
d <- data.frame(a = x[1:50000], b = x[50001:100000] %% 10)
print(head(aggregate(a ~ b, d, sum), 10)); cat(round(coef(lm(a ~ b, d)), 3), "\n")
m <- matrix(as.numeric(x[1:40000] %% 7), 200); cat(sum(m %*% m), "\n")
cat(unlist(parallel::mclapply(1:4, function(k) { y <- numeric(1e6) + k; sum(y) }, mc.cores = 2)), "\n")
cat(system("echo from a shell | tr a-z A-Z", intern = TRUE), "\n")
r <- tryCatch(stop("raised"), error = function(e) conditionMessage(e)); cat(r, "\n")
s <- serialize(d, NULL); cat(identical(unserialize(s), d), length(s), "\n"); quit(status = 6)
'''


def run(ctx):
    harness.need('Rscript')
    ctx.run(['Rscript', '--vanilla', '-e', SCRIPT], timeout=240)
