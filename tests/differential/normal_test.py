#!/usr/bin/env python3
"""Tests of normal.py: what may differ is left out, and nothing else. `run` starts them first."""
import copy, sys, unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from normal import kind, normal, pair


def paired(ours, theirs, host="h"):
    return pair(host, copy.deepcopy(ours), copy.deepcopy(theirs))


class Normal(unittest.TestCase):
    def test_time_and_chance_are_left_out_and_other_values_stay(self):
        value = {"rc": 1, "start": "12:00", "msg": "Paused for 1.5 seconds", "invocation": {}, "discovered_interpreter_python": "x"}
        self.assertEqual(normal(value), {"rc": 1, "start": "str", "msg": "Paused for N seconds"})
        self.assertNotEqual(normal({"stdout": "1.5"}), normal({"stdout": "1.6"}))
        self.assertNotEqual(normal({"start": "12:00"}), normal({"start": 12}))

    def test_only_sets_are_sorted(self):
        self.assertEqual(normal(["b", "a"], "ansible_run_tags"), ["a", "b"])
        self.assertEqual(normal(["b", "a"], "list"), ["b", "a"])


class Pair(unittest.TestCase):
    def test_a_value_that_differs_still_differs(self):
        for ours, theirs in [({"x": 1}, {"x": 2}), ({"x": 1}, {}), ({}, {"x": 1}), ({"x": [1, 2]}, {"x": [2, 1]}),
                             ({"r": {"changed": True}}, {"r": {"changed": False}}),
                             ({"r": {"changed": True, "rc": 1}}, {"r": {"changed": True}}),
                             ({"r": {"changed": True}}, {"r": {"changed": True, "dest": "/x"}})]:
            ours, theirs = paired(ours, theirs)
            self.assertNotEqual(ours, theirs)

    def test_a_module_may_return_more_than_the_reference(self):
        ours, theirs = paired({"r": {"changed": True, "more": 1}}, {"r": {"changed": True}})
        self.assertEqual(ours, theirs)

    def test_words_of_a_failure_may_differ_and_its_kind_may_not(self):
        def failure(words):
            return {"r": {"changed": False, "failed": True, "msg": words}}

        self.assertEqual(*paired(failure("x is undefined"), failure("'x' is undefined here")))
        self.assertNotEqual(*paired(failure("x is undefined"), failure("permission denied")))
        self.assertNotEqual(*paired(failure("x is undefined"), {"r": {"changed": False, "failed": False, "msg": "x"}}))


class Kind(unittest.TestCase):
    def test_failures_have_kinds(self):
        for words, expected in [("x is undefined", "undefined"), ("non-zero return code", "exit code"), ("strange", "other"),
                                ("missing required arguments: src", "arguments"), ("Permission denied", "permission")]:
            self.assertEqual(kind({"msg": words}), expected, words)
        self.assertEqual(kind({"unreachable": True, "msg": "x is undefined"}), "unreachable")


if __name__ == "__main__":
    unittest.main()
