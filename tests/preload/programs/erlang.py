# SPDX-License-Identifier: BSD-2-Clause
"""erlang: thousands of processes with heaps of their own, messages, tables, ports; its allocator maps for itself."""
import harness

SCRIPT = r'''
Main = self(),
Work = fun(N) -> L = [{I, lists:seq(1, I rem 200)} || I <- lists:seq(1, 400)],
                 Main ! {N, erlang:phash2([N | L])} end,
[spawn(fun() -> Work(N) end) || N <- lists:seq(1, 400)],
Sum = lists:sum([receive {N, H} -> H end || N <- lists:seq(1, 400)]), io:format("~p~n", [Sum]),
T = ets:new(t, [ordered_set, public]),
[ets:insert(T, {I, binary:copy(<<I:32>>, I rem 500)}) || I <- lists:seq(1, 20000)],
[ets:delete(T, I) || I <- lists:seq(1, 20000, 3)],
io:format("~p ~p~n", [ets:info(T, size), erlang:phash2(ets:tab2list(T))]),
B = list_to_binary([<<I:16>> || I <- lists:seq(1, 20000)]),
io:format("~p ~p~n", [erlang:crc32(zlib:uncompress(zlib:compress(B))), byte_size(B)]),
io:format("~s", [os:cmd("echo from a port | tr a-z A-Z")]),
R = (catch lists:foldl(fun(I, A) -> if I > 5 -> throw({caught, A}); true -> A + I end end, 0, lists:seq(1, 9))),
io:format("~p~n", [R]), erlang:garbage_collect(), halt(4).
'''


def run(ctx):
    harness.need('erl')
    ctx.run(['erl', '-noinput', '-noshell', '+S', '4:4', '-eval', SCRIPT])
