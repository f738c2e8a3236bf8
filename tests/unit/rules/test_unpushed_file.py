"""What a model read must be in the commit that is pushed."""

from __future__ import annotations

from dataclasses import replace

from rule_samples import ENVIRONMENT, SAMPLES

from export_gate.loosening.record import CONFIG
from export_gate.rules import unpushed_file
from export_gate.rules.judge import Judgement, Terms, judge
from export_gate.wall.observation import RunObservation

UNPUSHED = {"nets/helper.py": "untracked", "model.py": "not committed", "README.md": "not committed"}


def judged(*files: str, config: str = "export-gate.yml") -> Judgement:
    """The judgement of a good model that read these files."""
    sample = SAMPLES["verified"]
    run = RunObservation(environment=ENVIRONMENT, models=(replace(sample.observation, files=files),))
    return judge((sample.contract,), run, Terms(config=config, unpushed=UNPUSHED))


def test_a_file_that_nobody_added_fails_the_push():
    """The finding names the files and why they are not in the commit."""
    judgement = judged("model.py", "nets/helper.py", "nets/other.py")

    (finding,) = judgement.findings
    assert (judgement.exit_code, finding.rule, finding.model) == (1, "unpushed-file", "glyph-head")
    assert finding.message == (
        "glyph-head: it read files that are not in the commit that is pushed: model.py (not committed), "
        "nets/helper.py (untracked)"
    )


def test_files_that_the_model_did_not_read_do_not_matter():
    """An unfinished README does not stop a push."""
    assert judged("nets/other.py").exit_code == 0


def test_the_config_itself_must_be_pushed():
    """The result is valid only for this config."""
    judgement = judged(config="model.py")

    assert judgement.exit_code == 1
    assert [finding.model for finding in judgement.findings] == [CONFIG]


def test_a_file_in_a_folder_that_is_not_pushed_fails_the_push():
    """A submodule at another commit, or a repository inside this one, stands for all its files."""
    sample = SAMPLES["verified"]
    run = RunObservation(
        environment=ENVIRONMENT, models=(replace(sample.observation, files=("lib/net.py", "libs.py")),)
    )

    judgement = judge((sample.contract,), run, Terms(config="export-gate.yml", unpushed={"lib": "not committed"}))

    (finding,) = judgement.findings
    assert finding.message.endswith(": lib/net.py (lib: not committed)")


def test_what_is_around_a_submodule_is_none_of_its_files():
    """The submodule as a whole may not be pushed as it is; files around it are compared one by one."""
    reasons = (unpushed_file._reason(name, {".": "untracked", "../a.py": "not committed"}) for name in FILES)
    assert dict(zip(FILES, reasons, strict=True)) == {
        "net.py": "untracked",
        "../a.py": "not committed",
        "../b.py": "",
    }


FILES = ("net.py", "../a.py", "../b.py")
