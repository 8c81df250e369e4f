# SPDX-License-Identifier: BSD-2-Clause
"""php: extensions that are loaded with RTLD_DEEPBIND, arrays that grow and shrink, regular expressions, pipes."""
import harness

SCRIPT = r'''
$a = []; for ($i = 0; $i < 200000; $i++) { $k = "k" . ($i % 5000); $a[$k][] = str_repeat(chr(65 + $i % 26), $i % 300);
    if (count($a[$k]) > 5) array_shift($a[$k]); }
ksort($a); echo count($a), " ", md5(serialize($a)), "\n";
echo implode(",", array_intersect(["json", "posix", "tokenizer"], get_loaded_extensions())), "\n";
echo strlen(json_encode($a)), " ", count(json_decode(json_encode($a), true)), "\n"; unset($a);
$p = popen("echo from a shell | tr a-z A-Z", "r"); echo fgets($p); echo pclose($p), "\n";
echo preg_match_all('/[aeiou]+/', str_repeat('the quick brown fox ', 20000)), "\n";
function walk($n) { for ($i = 0; $i < $n; $i++) yield $i => range(0, $i % 50); }
$sum = 0; foreach (walk(20000) as $i => $r) $sum += count($r); echo $sum, "\n";
if (function_exists('pcntl_fork')) { for ($k = 1; $k < 5; $k++) { $pid = pcntl_fork();
    if ($pid == 0) { $x = str_repeat("y", 1000000 * $k); exit(strlen($x) == 1000000 * $k ? $k : 99); }
    pcntl_waitpid($pid, $status); echo "kid ", pcntl_wexitstatus($status), "\n"; } }
try { ini_set('memory_limit', '64M'); $big = new SplFixedArray(100000); throw new Exception("thrown"); }
catch (Exception $e) { echo $e->getMessage(), " ", $big->getSize(), "\n"; } exit(7);
'''


def run(ctx):
    harness.need('php')
    ctx.run(['php', '-r', SCRIPT])
