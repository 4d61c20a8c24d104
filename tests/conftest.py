"""Fixtures that the workflow's and the cluster's tests share."""

from tests.workflow.conftest import running  # noqa: F401
