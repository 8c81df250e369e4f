#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What scripts/test makes of meson's records: what is run again, what counts, what is shown."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import results  # noqa: E402


def record(name, result, suite="preload", text=""):
    return {"name": f"libhybrid:{suite} / {name}", "result": result, "duration": 1.0, "stderr": text}


class ResultsTest(unittest.TestCase):
    def test_all_passed(self):
        lines, good = results.close({"plain": [record("a", "OK"), record("b", "SKIP"), record("c", "EXPECTEDFAIL")]})
        self.assertTrue(good)
        self.assertEqual(lines[-1], "2 passed, 0 failed, 1 skipped")

    def test_nothing_run_is_no_success(self):
        self.assertFalse(results.close({})[1])
        self.assertFalse(results.close({"plain": [record("a", "SKIP")]})[1])

    def test_a_failure_fails_and_is_shown(self):
        for result in ("FAIL", "TIMEOUT", "ERROR", "INTERRUPT", "UNEXPECTEDPASS"):
            runs = {"plain": [record("a", "OK"), record("b", result, text="why\n")]}
            lines, good = results.close(runs)
            self.assertFalse(good, result)
            self.assertIn("why", lines)
            self.assertEqual(lines[-1], "1 passed, 1 failed, 0 skipped")

    def test_twice_failed_is_failed(self):
        runs = {"plain": [record("b", "FAIL", text="first")], "plain-again": [record("b", "FAIL", text="second")]}
        lines, good = results.close(runs)
        self.assertFalse(good)
        self.assertIn("second", lines)

    def test_passed_the_second_time_is_told(self):
        runs = {"plain": [record("b", "FAIL")], "plain-again": [record("b", "OK")], "asan": [record("b", "OK")]}
        lines, good = results.close(runs)
        self.assertTrue(good)
        self.assertIn("unsteady, passed when run again alone: plain, b", lines)
        self.assertEqual(lines[-1], "2 passed, 0 failed, 0 skipped")

    def test_a_second_run_of_one_is_no_excuse_for_another(self):
        runs = {"plain": [record("b", "FAIL"), record("c", "FAIL")], "plain-again": [record("b", "OK")]}
        self.assertFalse(results.close(runs)[1])

    def test_what_is_run_again(self):
        self.assertEqual(results.again([record("a", "OK"), record("b", "FAIL"), record("c", "TIMEOUT")]), ["b", "c"])

    def test_findings_are_final(self):
        for text in ("WARNING: ThreadSanitizer: data race", "==12==ERROR: AddressSanitizer: heap",
                     "a.c:3:4: runtime error: signed", "==77== Invalid read of size 8",
                     "     +hz_limits status: -11", "ended by SIGSEGV",
                     "atomics: page 3: write 17 is lost (0x11)"):
            self.assertEqual(results.again([record("b", "FAIL", text="before\n" + text)]), [], text)
        for suite in ("stress", "fuzz", "bench+stress"):
            self.assertEqual(results.again([record("b", "FAIL", suite)]), [], suite)

    def test_nothing_to_run_again_is_not_even_an_empty_line(self):
        """An empty name would be every test to meson."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plain.json")
            for found, said in ((record("b", "FAIL", "stress"), b""), (record("b", "FAIL"), b"b\n")):
                with open(path, "w", encoding="utf-8") as f:
                    print(json.dumps(found), file=f)
                self.assertEqual(subprocess.run([sys.executable, results.__file__, "again", path], check=True,
                                                capture_output=True).stdout, said)

    def test_many_failures_are_no_accident(self):
        self.assertEqual(results.again([record(f"t{i}", "FAIL") for i in range(results.MANY + 1)]), [])


if __name__ == "__main__":
    unittest.main()
