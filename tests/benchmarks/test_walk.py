"""The walks of a report and of a question do not grow. To make one longer, raise its limit and give the reason."""

from __future__ import annotations

import pytest

from benchmarks import walk


@pytest.fixture(scope="module")
def question():
    return walk.question_walk()


def test_a_report_is_two_write_transactions_and_passes_few_modules():
    report = walk.report_walk()
    assert report.write_transactions == 2
    passed = set(report.steps.modules)
    assert len(passed) <= walk.REPORT_MODULES, sorted(passed)
    assert report.steps.total <= walk.REPORT_CALLS
    # It is the whole walk that is counted, in both threads.
    assert {"ldp_client/client.py", "ldp_client/sending/sender.py", "ldp_client/sending/grpc_transport.py"} <= passed


def test_a_question_passes_few_modules_of_the_serving_process(question):
    passed = set(question.serving.modules)
    assert len(passed) <= walk.QUESTION_MODULES, sorted(passed)
    assert question.serving.total <= walk.QUESTION_CALLS
    assert {"ldp_server/service/operators/queries.py", "ldp_server/worker/client.py"} <= passed


def test_a_question_is_one_call_and_one_question_to_the_child(question):
    assert (question.grpc_calls, question.child_questions) == (1, 1)
    assert "ldp_server/worker/estimating.py" in question.child.modules


def test_only_the_projects_own_functions_count(question):
    for module in question.total.modules:
        assert module.startswith(("ldp_client/", "ldp_server/")) and "_pb2" not in module
