"""The gate's answer as JUnit XML, which CI systems show as tests."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from headway.gate.model import GateReport

_CONTROL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold; a target's error message may."""


def junit_xml(report: GateReport) -> bytes:
    """One test case for each check; "cannot tell" is skipped, with its reason."""
    statuses = [check.status for check in report.checks]
    counts = {
        "tests": str(len(statuses)),
        "failures": str(statuses.count("failed")),
        "skipped": str(statuses.count("cannot tell")),
        "errors": "0",
    }
    root = Element("testsuites", counts)
    suite = SubElement(root, "testsuite", {"name": "headway gate", **counts})
    for check in report.checks:
        case = {"classname": f"{check.kind}.{check.stage}", "name": check.name}
        element = SubElement(suite, "testcase", {k: _clean(v) for k, v in case.items()})
        if check.status == "failed":
            SubElement(element, "failure", {"message": _clean(check.text), "type": check.kind})
        elif check.status == "cannot tell":
            SubElement(element, "skipped", {"message": _clean(f"cannot tell: {check.text}")})
        else:
            SubElement(element, "system-out").text = _clean(check.text)
    indent(root)
    text: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _clean(text: str) -> str:
    return _CONTROL.sub("�", text)
