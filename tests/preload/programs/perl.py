# SPDX-License-Identifier: BSD-2-Clause
"""perl: hashes, regular expressions, sorting, fork, threads, closures that go away."""
import harness

SCRIPT = r'''
use strict; use warnings;
my %h; $h{"k$_"} = { n => $_, l => [1 .. $_ % 17], s => 'x' x ($_ % 300) } for 1 .. 40000;
my $sum = 0; $sum += $h{$_}{n} * @{$h{$_}{l}} + length $h{$_}{s} for sort keys %h; print "sum $sum\n";
my $text = join ' ', map { "w" . ($_ * 7919 % 10007) } 1 .. 60000; my %c; $c{$1}++ while $text =~ /\b(w\d{2,4})\b/g;
my @top = sort { $c{$b} <=> $c{$a} || $a cmp $b } keys %c; print scalar(@top), " $top[0] $c{$top[0]}\n";
my $big = 'abc' x 2_000_000; $big =~ s/b/<->/g; print length $big, "\n"; undef $big;
my @kids; for my $k (1 .. 8) { my $pid = fork; if (!$pid) { $h{"c$_"} = $k for 1 .. 2000; delete $h{"k$_"} for 1 .. 5000;
    exit((scalar keys %h) == 37000 ? $k : 99); } push @kids, $pid; }
for (@kids) { waitpid $_, 0; print "kid ", $? >> 8, "\n"; } print scalar(keys %h), "\n";
print `echo from a shell | tr a-z A-Z`; open my $p, '-|', 'seq 5' or die; print <$p>; close $p;
if (eval { require threads; 1 }) { my @t = map { my $n = $_; threads->create(sub { my %l; $l{$_} = "v$_" for 1 .. 4000;
    return $n * scalar keys %l }) } 1 .. 4; print "thread ", $_->join, "\n" for @t; }
my @loop; push @loop, { self => \@loop, data => [1 .. 1000] } for 1 .. 50; local $SIG{__WARN__} = sub { print "warned\n" };
warn "w\n"; printf "%s\n", join ',', (sort { $a <=> $b } map { ($_ * 31) % 1009 } 1 .. 1000)[0 .. 5];
local $SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; my @x; push @x, [1 .. 50] while 1 and splice @x, 0, @x > 5000 ? 5000 : 0 or 1; };
print "ended by $@"; exit 8;
'''


def run(ctx):
    harness.need('perl')
    ctx.run(['perl', '-e', SCRIPT], env={'PERL_HASH_SEED': '0'})
