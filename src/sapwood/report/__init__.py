"""The report of an evaluation: one page that needs nothing else."""

from sapwood.report.page import render, write_report

__all__ = ["render", "write_report"]
