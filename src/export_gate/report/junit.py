"""Write results as JUnit XML for CI servers: a suite per model, a test per target and control input.

A test fails if a violation covers it, never by a judgement of its own: a violation that belongs to no control input is
a test named after its rule, so a report is red exactly if the verdict is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from xml.etree import ElementTree as ET

from export_gate.report.commands import reproduce
from export_gate.report.escape import visible
from export_gate.report.evidence import unchanged_line
from export_gate.report.findings import cause_words, located_lines, tried_line
from export_gate.report.record import ProblemView, Report
from export_gate.report.results import Results
from export_gate.rules.base import Finding, next_step
from export_gate.rules.cases import differing_outputs
from export_gate.rules.measure import Measured
from export_gate.rules.numbers import describe_fault
from export_gate.rules.wording import place
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.equivalence import FAULT_KINDS
from export_gate.wall.observation import ModelObservation

RULES_OF_FAILURE = ("run-failed", "range-narrowed")
RULES_OF_STRUCTURE = ("structure-mismatch",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """Why one test is red."""

    rule: str
    message: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One line of a CI server's table."""

    group: str
    """`model.target`."""
    name: str
    failing: tuple[Failing, ...] = ()
    skipped: str = ""
    broken: Failing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One model."""

    model: str
    tests: tuple[Test, ...]
    duration_s: float
    properties: dict[str, str] = field(default_factory=dict)
    printed: str = ""


Place = tuple[TargetName, str]
"""(target, control input)."""


def junit(results: Results, report: Report) -> str:
    """The XML document."""
    suites = [_suite(contract, results, report) for contract in results.contracts]
    # Findings about the config, or a model that only the lock has, decide the verdict too.
    known = {contract.name for contract in results.contracts}
    others = dict.fromkeys(finding.model for finding in results.findings if finding.model not in known)
    suites += [_suite(ModelContract(name=name, factory="", inputs={}, targets=()), results, report) for name in others]
    root = ET.Element("testsuites", {"name": "export-gate", "time": f"{results.duration_s:.3f}", **_counts(suites)})
    root.extend(_element(suite, results.started) for suite in suites)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(contract: ModelContract, results: Results, report: Report) -> Suite:
    unseen = Measured(contract=contract, observation=ModelObservation(model=contract.name))
    measured = next((model for model in report.measured if model.contract.name == contract.name), unseen)
    findings = [finding for finding in results.findings if finding.model == contract.name]
    tests = list(_tests(measured, findings, results))
    problems = [problem for problem in report.problems if problem.model in (None, contract.name)]
    tests += [Test(group=contract.name, name="check", broken=_broken(problem)) for problem in problems]
    evidence = next((row.evidence for row in report.rows if row.model == contract.name), report.evidence)
    return Suite(
        model=contract.name,
        tests=tuple(_numbered(tests)),
        duration_s=measured.observation.duration_s,
        properties=_properties(results, report, evidence, measured.observation),
        printed="\n".join(
            f"{'waived' if finding.waiver else finding.severity}: {finding.rule}: {finding.message} {finding.hint}"
            for finding in findings
            if finding.severity != "violation"
        ),
    )


def _numbered(tests: Sequence[Test]) -> Iterator[Test]:
    """The tests, each with a name of its own: some CI servers read only the first of a name."""
    seen: Counter[tuple[str, str]] = Counter()
    for test in tests:
        place_ = (test.group, test.name)
        seen[place_] += 1
        yield test if seen[place_] == 1 else replace(test, name=f"{test.name} {seen[place_]}")


def _tests(measured: Measured, findings: Sequence[Finding], results: Results) -> Iterator[Test]:
    contract, observation = measured.contract, measured.observation
    seen = [target for planned in contract.targets for target in measured.seen(planned.name)]
    ran = {(target.target, case.case) for target in seen for case in target.cases}
    controls = observation.controls
    names = {
        planned.name: [member.name for member in (controls.run_on(planned.kind) if controls else ())]
        for planned in contract.targets
    }
    # Inputs of the sweep over sizes are not members of the control set.
    for target, case in sorted(ran - {(t, name) for t, some in names.items() for name in some}):
        names[target].append(case)
    failing = _failing(measured, findings, results)
    covered = {finding for found in failing.values() for finding, _ in found}
    for target, cases in names.items():
        for case in cases:
            found = tuple(why for _, why in failing.get((target, case), ()))
            is_skipped = (target, case) not in ran and not found
            yield Test(
                group=f"{contract.name}.{target}", name=case, failing=found, skipped="not run" if is_skipped else ""
            )
    for finding in findings:
        if finding.severity == "violation" and finding not in covered:
            name = " ".join(filter(None, (finding.rule, finding.output)))
            group = ".".join(filter(None, (contract.name, finding.target)))
            yield Test(group=group, name=name, failing=(_by_finding(finding, results),))


def _failing(
    measured: Measured, findings: Sequence[Finding], results: Results
) -> dict[Place, list[tuple[Finding, Failing]]]:
    """What is wrong at each control input, with the finding that reports it."""
    contract, observation = measured.contract, measured.observation
    found: dict[Place, list[tuple[Finding, Failing]]] = {}
    for target, case, output, rules, words in _wrong(measured):
        finding = _said_by(findings, rules, target, output, case)
        if finding is not None:
            message = f"{place(contract.name, target, output, case)}: {words}" if words else finding.message
            command = reproduce(results.caller, contract.name, target, case)
            worst = "" if case == finding.case or finding.case is None else f" (of the worst, {finding.case})"
            # Node and smallest input are those of the worst control input.
            located = "" if worst else "".join(f"\n{line}" for line in located_lines(finding))
            step = f"next{worst}: {next_step(finding)}\nrun: {command}"
            text = f"{message}{located}\ncause{worst}: {cause_words(finding)}\n{step}"
            why = Failing(rule=finding.rule, message=message, text=text)
            found.setdefault((target, case), []).append((finding, why))
    covered = {finding for some in found.values() for finding, _ in some}
    members = {member.name for member in observation.control_inputs}
    for finding in findings:
        if finding.severity == "violation" and finding not in covered and finding.target and finding.case in members:
            place_ = (finding.target, finding.case)
            found.setdefault(place_, []).append((finding, _by_finding(finding, results)))
    return found


def _wrong(measured: Measured) -> Iterator[tuple[TargetName, str, str | None, tuple[str, ...], str]]:
    """(target, control input, output, rules that may speak of it, words) of every call that went wrong."""
    for failed in measured.failed:
        if failed.target and failed.case and not failed.is_end:
            words = f"{failed.failure.type}: {failed.failure.message}"
            yield failed.target, failed.case, None, RULES_OF_FAILURE, words
    for odd in measured.unpaired:
        expected, actual = ", ".join(odd.structure.expected), ", ".join(odd.structure.actual)
        words = f"expected outputs {expected}, got {actual}"
        yield odd.target, odd.case, None, RULES_OF_STRUCTURE, words
    for kind in FAULT_KINDS:
        for differing in differing_outputs(measured, kind):
            for fault in differing.faults:
                yield differing.target, fault.case, differing.output, (f"{kind}-mismatch",), describe_fault(fault)


def _said_by(
    findings: Sequence[Finding], rules: Sequence[str], target: TargetName, output: str | None, case: str
) -> Finding | None:
    """The violation that covers this; None if a waiver or a finding of lower severity does."""
    mine = [f for f in findings if f.rule in rules and f.target == target and f.output in (None, output)]
    if any(f.waiver is not None and fnmatchcase(case, f.waiver.case) for f in mine):
        return None
    return next((finding for finding in mine if finding.severity == "violation"), None)


def _by_finding(finding: Finding, results: Results) -> Failing:
    facts = (
        *located_lines(finding),
        f"cause: {cause_words(finding)}",
        f"next: {next_step(finding)}",
        f"run: {results.command(finding)}",
    )
    lines = [finding.message, *facts, *tried_line(finding), *finding.details]
    return Failing(rule=finding.rule, message=finding.message, text="\n".join(lines))


def _broken(problem: ProblemView) -> Failing:
    lines = [problem.message, f"next: {problem.hint}", f"run: {problem.command}", problem.details]
    return Failing(rule="could-not-be-checked", message=problem.message, text="\n".join(filter(None, lines)))


def _properties(results: Results, report: Report, evidence: str, observation: ModelObservation) -> dict[str, str]:
    environment = results.run.environment
    seen = {"Python": environment.python, **environment.versions, "CPU": environment.cpu} if environment else {}
    return {
        "verdict": report.verdict,
        "evidence": evidence,
        "export-gate": results.tool_version,
        "config": results.config_path,
        "config-sha256": results.config_sha256,
        **({"revision": results.head} if results.head else {}),
        **({"controls-sha256": observation.controls.sha256} if observation.controls else {}),
        **({"unchanged": unchanged_line(observation.reused)} if observation.reused else {}),
        **seen,
    }


def _counts(suites: Sequence[Suite]) -> dict[str, str]:
    tests = [test for suite in suites for test in suite.tests]
    return {
        "tests": str(len(tests)),
        "failures": str(sum(bool(test.failing) for test in tests)),
        "errors": str(sum(test.broken is not None for test in tests)),
    }


def _element(suite: Suite, started: str) -> ET.Element:
    skipped = sum(bool(test.skipped) for test in suite.tests)
    attributes = {
        "name": visible(suite.model),
        **_counts([suite]),
        "skipped": str(skipped),
        "time": f"{suite.duration_s:.3f}",
        # JUnit's usual schema allows no time zone.
        "timestamp": visible(started).removesuffix("Z"),
    }
    # Every text goes through `visible`: XML 1.0 cannot hold most control characters, not even escaped.
    element = ET.Element("testsuite", attributes)
    properties = ET.SubElement(element, "properties")
    for name, value in suite.properties.items():
        ET.SubElement(properties, "property", name=visible(name), value=visible(value))
    element.extend(_case(test) for test in suite.tests)
    if suite.printed:
        ET.SubElement(element, "system-out").text = visible(suite.printed)
    return element


def _case(test: Test) -> ET.Element:
    element = ET.Element("testcase", classname=visible(test.group), name=visible(test.name))
    if test.failing:
        first = test.failing[0]
        failure = ET.SubElement(element, "failure", type=visible(first.rule), message=visible(first.message))
        failure.text = visible("\n\n".join(why.text for why in test.failing))
    if test.broken is not None:
        error = ET.SubElement(element, "error", type=test.broken.rule, message=visible(test.broken.message))
        error.text = visible(test.broken.text)
    if test.skipped:
        ET.SubElement(element, "skipped", message=test.skipped)
    return element
