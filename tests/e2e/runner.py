"""GitHub's workflows on this machine: act runs them, with folders for the actions of others and a server for GitHub."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = "acme/shop"
TOKEN = "ghs_0123456789abcdefghijklmnopqrstuvwxyz"
HEAD = "1" * 40
ACT = Path(sys.executable).parent / "act"
UPLOAD = """
name: upload
inputs: {name: {}, path: {}, include-hidden-files: {}, if-no-files-found: {}}
outputs: {artifact-url: {value: "https://github.example/acme/shop/actions/runs/1/artifacts/9"}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {NAME: "${{ inputs.name }}", FILES: "${{ inputs.path }}"}
      run: |
        mkdir "$STUB_ARTIFACTS/$NAME"
        while IFS= read -r file; do
          if [ -n "$file" ]; then cp -R "$file" "$STUB_ARTIFACTS/$NAME/"; fi
        done <<<"$FILES"
"""
DOWNLOAD = """
name: download
inputs: {pattern: {}, name: {}, path: {}, github-token: {}, run-id: {}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {PATTERN: "${{ inputs.pattern }}", NAME: "${{ inputs.name }}", FOLDER: "${{ inputs.path }}"}
      run: |
        mkdir -p "$FOLDER"
        if [ -n "$NAME" ]; then cp -R "$STUB_ARTIFACTS/$NAME/." "$FOLDER/"; exit; fi
        for found in "$STUB_ARTIFACTS"/$PATTERN; do cp -R "$found" "$FOLDER/"; done
"""
NOTHING = """
name: nothing
inputs: {python-version: {}}
runs: {using: composite, steps: [{shell: bash, run: "true"}]}
"""
ATTEST = """
name: attest
inputs: {subject-path: {}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {FILES: "${{ inputs.subject-path }}"}
      run: |
        shopt -s globstar
        for file in $FILES; do
          if [ -f "$file" ]; then sha256sum "$file" >> "$STUB_ARTIFACTS/attested"; fi
        done
"""
SAVE = """
name: save
inputs: {path: {}, key: {}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {KEY: "${{ inputs.key }}", FOLDER: "${{ inputs.path }}"}
      run: mkdir -p "$STUB_ARTIFACTS/caches" && cp -R "$FOLDER" "$STUB_ARTIFACTS/caches/$KEY"
"""
RESTORE = """
name: restore
inputs: {path: {}, key: {}, restore-keys: {}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {KEY: "${{ inputs.restore-keys }}", FOLDER: "${{ inputs.path }}"}
      run: |
        for found in "$STUB_ARTIFACTS"/caches/"$KEY"*; do
          if [ -d "$found" ]; then cp -R "$found" "$FOLDER"; fi
        done
"""
STUBS = {
    "actions/cache/restore": RESTORE,
    "actions/cache/save": SAVE,
    "actions/upload-artifact": UPLOAD,
    "actions/download-artifact": DOWNLOAD,
    "actions/setup-python": NOTHING,
    "actions/attest-build-provenance": ATTEST,
}


@dataclass(frozen=True)
class Ended:
    """A finished workflow run."""

    code: int
    lines: list[dict[str, Any]]

    @property
    def text(self) -> str:
        """All that was printed."""
        return "\n".join(str(line.get("msg", "")).rstrip("\n") for line in self.lines)

    def outputs(self, job: str) -> dict[str, str]:
        """Everything that the job's steps gave out, the last one of a name."""
        return {
            line["name"]: line["arg"]
            for line in self.lines
            if line.get("command") == "set-output" and line.get("jobID") == job
        }

    def result(self, job: str) -> str:
        """`success` or `failure`."""
        (found,) = {line["jobResult"] for line in self.lines if line.get("jobID") == job and "jobResult" in line}
        return str(found)


@dataclass
class Runner:
    """Runs the workflows of a repository."""

    folder: Path
    """Of the repository."""
    work: Path
    checkout: Path
    """Of the action."""
    environment: dict[str, str]
    api_url: str
    run_id: int = 100

    def stubs(self) -> list[str]:
        """Folders in the place of the actions of others."""
        files = [*self.checkout.glob("**/action.yml"), *(self.checkout / "examples" / "workflows").glob("*.yml")]
        files += (self.folder / ".github" / "workflows").glob("*.yml")
        uses = re.compile(r"uses: (actions/[\w-]+)((?:/[\w-]+)*)@(\w+)")
        found = {}
        for name, below, revision in {match for file in files for match in uses.findall(file.read_text())}:
            if f"{name}{below}" in STUBS:
                folder = self.work / "stubs" / name
                (folder / below.strip("/")).mkdir(parents=True, exist_ok=True)
                (folder / below.strip("/") / "action.yml").write_text(STUBS[f"{name}{below}"])
                found[f"{name}@{revision}={folder}"] = "--local-repository"
        return [word for place, option in found.items() for word in (option, place)]

    def path(self) -> str:
        """PATH of a machine whose `python` is the project's, as actions/setup-python leaves it."""
        shim = self.work / "bin" / "python"
        shim.parent.mkdir(exist_ok=True)
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        shim.chmod(0o755)
        return f"{shim.parent}:{Path(os.path.realpath(sys.executable)).parent}:/usr/local/bin:/usr/bin:/bin"

    def run(self, event: str, payload: dict[str, Any], workflow: str, *, job: str = "", **more: str) -> Ended:
        """Run the workflow of that name, or one job of it, for that event."""
        self.run_id += 1
        (self.work / "artifacts").mkdir(exist_ok=True)
        (self.work / "event.json").write_text(json.dumps(payload))
        variables = {
            **{name: value for name, value in self.environment.items() if name.startswith(("PIP_", "OMP_"))},
            "GITHUB_API_URL": self.api_url,
            "GITHUB_RUN_ID": str(self.run_id),
            "GITHUB_RUN_ATTEMPT": "1",
            "STUB_ARTIFACTS": str(self.work / "artifacts"),
            **more,
        }
        command = [str(ACT), event, "--platform", "ubuntu-latest=-self-hosted", "--pull=false", "--no-cache-server"]
        command += ["--action-offline-mode", "--json", "--workflows", f".github/workflows/{workflow}"]
        command += ["--eventpath", str(self.work / "event.json"), "--secret", f"GITHUB_TOKEN={TOKEN}"]
        command += ["--local-repository", f"acme/export-gate@v1={self.checkout}", *self.stubs()]
        command += ["--job", job] if job else []
        for name, value in variables.items():
            command += ["--env", f"{name}={value}"]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={"PATH": self.path(), "HOME": str(self.work), "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return Ended(code=done.returncode, lines=lines)


def pull_request(head: str = HEAD, repository: str = REPOSITORY, base: str = "2" * 40) -> dict[str, Any]:
    """The payload of a pull_request event."""
    return {
        "action": "synchronize",
        "number": 7,
        "pull_request": {
            "number": 7,
            "state": "open",
            "head": {"sha": head, "ref": "feature", "repo": {"full_name": repository}},
            "base": {"ref": "main", "sha": base, "repo": {"full_name": REPOSITORY}},
        },
        "repository": {"full_name": REPOSITORY, "name": "shop", "owner": {"login": "acme"}},
    }
