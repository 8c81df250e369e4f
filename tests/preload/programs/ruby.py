# SPDX-License-Identifier: BSD-2-Clause
"""ruby: hashes, threads, fork, spawn, collections of garbage, C extensions."""
import harness

SCRIPT = r'''
require 'digest'; require 'json'; require 'zlib'
h = {}; 200_000.times { |i| l = (h["k#{i % 5000}"] ||= []); l << "x" * (i % 300); l.shift if l.size > 5 }
puts Digest::MD5.hexdigest(Marshal.dump(h)), h.to_json.size, Zlib.crc32(Zlib::Deflate.deflate(h.to_json, 1).size.to_s)
puts 4.times.map { |j| Thread.new { (0..20_000).map { |x| (x * j).to_s }.join.size } }.map(&:value).inspect
(1..6).each { |k| pid = fork { x = "y" * (1_000_000 * k); h.delete("k#{k}"); exit!(h.size == 4999 ? k : 99) }
  Process.wait pid; puts "kid #{$?.exitstatus}" }
puts h.size, `echo from a shell | tr a-z A-Z`; Process.wait Process.spawn("exit 5"); puts $?.exitstatus
r, w = IO.pipe; Thread.new { 2000.times { |i| w.puts "line #{i}" * 20 }; w.close }; puts r.read.size
h = nil; GC.start; GC.compact if GC.respond_to?(:compact) rescue nil
puts (1..3000).map { |n| "a" * (n * 37 % 9001) }.sort_by(&:size).last.size
trap("USR1") { puts "told" }; Process.kill("USR1", $$); sleep 0.1
begin; raise ArgumentError, "raised"; rescue => e; puts e.message; end
at_exit { puts "ended" }; exit 9
'''


def run(ctx):
    harness.need('ruby')
    ctx.run(['ruby', '-e', SCRIPT])
