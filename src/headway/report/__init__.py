"""Reports: everything that is published of a run, made from its directory alone."""

from headway.report.files import write_reports
from headway.report.model import Report, StageReport
from headway.report.run import build, stage_summary

__all__ = ["Report", "StageReport", "build", "stage_summary", "write_reports"]
