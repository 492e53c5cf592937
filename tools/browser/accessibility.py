"""Checks pages with axe-core against WCAG 2.2, levels A and AA."""

from functools import cache
from importlib.resources import files

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]

RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {runOnly: {type: 'tag', values: arguments[0]}, resultTypes: ['violations']})
    .then(result => done(result.violations), error => done([{id: String(error), nodes: []}]));
"""


@cache
def axe_source():
    return (files("selenium_axe_python") / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def violations(chrome):
    """Describes each violation on the shown page in one line."""
    chrome.run(axe_source())
    found = chrome.driver.execute_async_script(RUN, TAGS)
    return [describe(violation, node) for violation in found for node in violation["nodes"] or [{}]]


def describe(violation, node):
    summary = " ".join(node.get("failureSummary", "").split())
    return f"{violation['id']}: {node.get('html', '')[:160]} ({summary[:300]})"
