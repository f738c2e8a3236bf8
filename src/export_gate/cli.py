"""The command line: the only place that prints and exits.

Exit codes: 0 verified, 1 violations, 2 usage or config, 3 the gate itself failed. Heavy imports wait for the command
that needs them, so that `--help` and `validate` answer at once.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from export_gate import __version__
from export_gate.contract import TARGET_NAMES
from export_gate.errors import GateError, UserError

if TYPE_CHECKING:
    from export_gate.contract import Job
    from export_gate.interpreter import Interpreter
    from export_gate.judging import Outcome
    from export_gate.observe import Listener

DEFAULT_CONFIGS = ("export-gate.yml", "export-gate.yaml")
USAGE, BROKEN = 2, 3
INTERRUPTED = 130
"""128 + SIGINT, as shells have it."""

config_option = click.option(
    "-c", "--config", "config", type=click.Path(path_type=Path), help="The config; default export-gate.yml."
)
python_option = click.option("--python", metavar="PATH", help="The project's interpreter (has torch).")
folder_option = click.option(
    "--report-dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Receives results.json, report.md, report.html and artifacts; default .export-gate beside the config.",
)
fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["violation", "warning"]),
    default="violation",
    show_default=True,
    help="The least severity that fails the check.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "EXPORT_GATE"})
@click.version_option(__version__, prog_name="export-gate")
def cli() -> None:
    """Check that a PyTorch model still means the same thing after export.

    Exit codes: 0 verified, 1 violations, 2 usage or config, 3 the gate itself failed.
    """


@cli.command()
@click.argument("models", nargs=-1)
@config_option
@python_option
@folder_option
@click.option("--target", "targets", multiple=True, help="Only this target; may be repeated.")
@click.option(
    "--skip-target",
    "skipped",
    multiple=True,
    type=click.Choice(TARGET_NAMES),
    help="Not this target, if it is planned at all; may be repeated.",
)
@click.option("--case", "cases", multiple=True, metavar="GLOB", help="Only these control inputs; may be repeated.")
@click.option(
    "--lock-base", metavar="COMMIT", help="Take the interface lock from this commit, not from the working tree."
)
@click.option("--shard", metavar="N/TOTAL", help="Only this part of the models, e.g. 1/4; see `plan`.")
@fail_on_option
@click.option("-j", "--jobs", type=click.IntRange(1, 64), help="Models at a time; default one per core.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, only the report.")
def run(
    models: tuple[str, ...],
    config: Path | None,
    python: str | None,
    folder: Path | None,
    targets: tuple[str, ...],
    skipped: tuple[str, ...],
    cases: tuple[str, ...],
    lock_base: str | None,
    shard: str | None,
    fail_on: str,
    jobs: int | None,
    quiet: bool,
) -> None:
    """Export and verify MODELS (default: all) and report."""
    from export_gate import judging, pipeline
    from export_gate.plan import Selection
    from export_gate.pushing import differences
    from export_gate.shards import parse_shard

    path = find_config(config)
    order = pipeline.Order(
        config=path,
        selection=Selection(models=models, targets=targets, skipped=skipped, cases=cases),
        python=python,
        parallel=jobs or pipeline.default_parallel(),
        folder=folder or path.parent / ".export-gate",
        environment=dict(os.environ),
        shard=parse_shard(shard) if shard else None,
        lock_base=lock_base or None,
    )
    with follow(quiet=quiet) as announce:
        outcome = pipeline.run(order, announce)
    if fail_on == "warning":
        outcome = judging.fail_on_warnings(outcome)
    show(outcome)
    for line in outcome.notes:
        click.echo(f"note: {line}", err=True)
    for line in differences(order.environment, path.resolve().parent):
        click.echo(f"note: {line}", err=True)
    sys.exit(outcome.judgement.exit_code)


@cli.command()
@click.argument("configs", nargs=-1, type=click.Path(path_type=Path))
@config_option
def validate(configs: tuple[Path, ...], config: Path | None) -> None:
    """Check CONFIGS (default: as `run` finds one) without running anything."""
    from export_gate.config import load_config

    mistakes = []
    for path in configs if configs and config is None else (*configs, find_config(config)):
        try:
            count = len(load_config(path).models)
            click.echo(f"{path}: valid, {count} {'model' if count == 1 else 'models'}")
        except UserError as error:
            mistakes.append(str(error) + (f"\n{error.hint}" if error.hint else ""))
    if mistakes:
        raise UserError("\n".join(mistakes))


@cli.command()
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(["terminal", "markdown", "html", "json", "junit", "sarif", "comment", "summary"]),
    default="terminal",
    show_default=True,
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file instead of the terminal.")
def report(results: Path, format_: str, output: Path | None) -> None:
    """Render RESULTS (a results.json) again; exits by its verdict."""
    from export_gate import judging

    outcome = judging.rejudge(results, lambda contract: contract)
    text = render_as(outcome, format_, is_terminal=output is None)
    if output is None:
        click.echo(text, nl=False, color=True if color() else None)
    else:
        save_text(text, output)
    sys.exit(outcome.judgement.exit_code)


@cli.command(name="judge")
@click.argument("results", type=click.Path(path_type=Path))
@click.option("-c", "--config", type=click.Path(path_type=Path), help="Take tolerances and output promises from here.")
@click.option("--atol", type=click.FloatRange(min=0), help="Absolute tolerance instead of the recorded one.")
@click.option("--rtol", type=click.FloatRange(min=0), help="Relative tolerance instead of the recorded one.")
@click.option("--target", "targets", multiple=True, help="Only for this target; may be repeated.")
@click.option(
    "--today", type=click.DateTime(["%Y-%m-%d"]), help="The date (UTC) that waivers are held against; default today's."
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the new results here.")
def judge_(
    results: Path,
    config: Path | None,
    atol: float | None,
    rtol: float | None,
    targets: tuple[str, ...],
    today: datetime | None,
    output: Path | None,
) -> None:
    """Judge RESULTS again, with other tolerances or on another day, without exporting."""
    from export_gate import judging
    from export_gate.config import load_config
    from export_gate.report.results import write_results

    if config is None and atol is None and rtol is None and today is None:
        raise click.UsageError("nothing to change: give --atol, --rtol, --config or --today")
    by_config: Callable[[Any], Any] = judging.with_config(load_config(config)) if config else lambda contract: contract
    by_option = judging.with_tolerance(atol, rtol, targets)
    day = (today or datetime.now(timezone.utc)).date().isoformat()
    outcome = judging.rejudge(results, lambda contract: by_option(by_config(contract)), day)
    planned = sorted({target.name for contract in outcome.results.contracts for target in contract.targets})
    for name in targets:
        if name not in planned:
            raise UserError(f"{results}: no model has the target {name!r}; it has {', '.join(planned)}")
    if output is not None:
        write_results(outcome.results, output)
    show(outcome)
    sys.exit(outcome.judgement.exit_code)


@cli.command(name="lock")
@click.argument("results", required=False, type=click.Path(path_type=Path))
@config_option
def lock_(results: Path | None, config: Path | None) -> None:
    """Write the interfaces and margins of RESULTS (default: the last run's) to export-gate.lock."""
    from export_gate.locking import write_lock_of

    path = find_config(config)
    written, count = write_lock_of(results or path.parent / ".export-gate" / "results.json", path)
    click.echo(f"{written}: written, {count} {'model' if count == 1 else 'models'}")


@cli.command()
@click.argument("models", nargs=-1)
@config_option
@click.option("--target", "targets", multiple=True, help="Only this target; may be repeated.")
@click.option("--shards", type=click.IntRange(1, 256), required=True, help="Machines to spread the models over.")
def plan(models: tuple[str, ...], config: Path | None, targets: tuple[str, ...], shards: int) -> None:
    """Print the matrix of a GitHub workflow that spreads MODELS (default: all) over machines, as one line of JSON."""
    from export_gate.config import load_config
    from export_gate.plan import Selection, select
    from export_gate.shards import matrix

    contracts = select(load_config(find_config(config)), Selection(models=models, targets=targets))
    click.echo(matrix(contracts, shards))


@cli.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path, dir_okay=False), help="Write the results here."
)
def merge(results: tuple[Path, ...], output: Path) -> None:
    """Join the RESULTS of a run's shards, judge them as one and report; exits by the verdict."""
    from export_gate import judging
    from export_gate.report.results import write_results

    outcome = judging.join(results)
    write_results(outcome.results, output)
    show(outcome)
    sys.exit(outcome.judgement.exit_code)


@cli.command()
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--comment",
    "mode",
    type=click.Choice(["always", "changes", "on-failure", "never"]),
    default="always",
    show_default=True,
    help="When the pull request gets a comment.",
)
@click.option("--comment-id", default="", help="Tells apart the comments of several jobs; default export-gate.")
@click.option("--template", type=click.Path(path_type=Path), help="A Jinja template of your own for the comment.")
@fail_on_option
@click.option("--artifact-url", default="", help="Where the uploaded report and files are, for a link.")
@click.option(
    "--annotations/--no-annotations", default=True, help="Notes beside the code; off where another job has them."
)
@click.option("--log", type=click.Path(path_type=Path), help="What the run printed: says why there are no results.")
@click.option("--allow-pull-request-target", is_flag=True, help="Work under pull_request_target too.")
@click.option(
    "--stage",
    type=click.Choice(["one", "two"]),
    default="one",
    show_default=True,
    help="Two: report the results of a fork's run under workflow_run.",
)
def publish(results: Path, stage: str, allow_pull_request_target: bool, **options: Any) -> None:
    """Publish RESULTS on GitHub: comment, job summary, annotations, outputs; exits by the verdict.

    Reads the GITHUB_ variables of the runner, and the token from GITHUB_TOKEN. Never runs the project's code.
    """
    from export_gate.github.command import run_publish
    from export_gate.github.shown import Publication

    options["comment_id"] = options["comment_id"] or "export-gate"
    order = Publication(results=results, **options)
    code = run_publish(order, os.environ, click.echo, stage=stage, allow_pull_request_target=allow_pull_request_target)
    sys.exit(code)


@cli.command()
@click.argument("model")
@config_option
@python_option
@click.option("--show", "shown", metavar="NAME", help="Print one control input.")
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), help="With --show: write it as .npz.")
def controls(model: str, config: Path | None, python: str | None, shown: str | None, save: Path | None) -> None:
    """List the control inputs of MODEL, in order."""
    from export_gate import asking, pipeline
    from export_gate.report.controls import listing, one_input

    if save is not None and shown is None:
        raise click.UsageError("--save needs --show NAME")
    path = find_config(config)
    order = pipeline.Order(config=path, python=python, environment=dict(os.environ))
    question = {"action": "controls", "show": shown, "save": str(save.resolve()) if save else None}
    observed = asking.ask(path, model, order, **question)
    lines = one_input(observed.answers[0]) if shown else listing(observed.run.models[0])
    click.echo("\n".join(lines))


@cli.command(name="kit")
@click.argument("model")
@config_option
@python_option
@click.option(
    "--target",
    "targets",
    multiple=True,
    type=click.Choice(["onnx", "pt2"]),
    help="Hold this target's file as well; the ONNX file is always there.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder to write; default MODEL-kit here.",
)
@click.option("--force", is_flag=True, help="Even of a model that is not verified; replaces a folder that is no kit.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, only what was written.")
def kit_(
    model: str,
    config: Path | None,
    python: str | None,
    targets: tuple[str, ...],
    output: Path | None,
    force: bool,
    quiet: bool,
) -> None:
    """Verify MODEL and write its conformance kit: artifact, control inputs, expected outputs, tolerances.

    `replay` holds the kit against ONNX Runtime wherever it is deployed, without torch.
    """
    from export_gate import pipeline
    from export_gate.kit.write import make_kit
    from export_gate.plan import Selection

    order = pipeline.Order(
        config=find_config(config),
        selection=Selection(models=(model,), targets=tuple(dict.fromkeys(("onnx", *targets)))),
        python=python,
        environment=dict(os.environ),
    )
    place = output or Path(f"{model}-kit")
    with follow(quiet=quiet) as announce:
        made = make_kit(order, place, announce, force=force)
    if made.kit is None:
        show(made.outcome)
        hint = "" if force else "; --force writes one that says so"
        click.echo(f"{place}: no kit was written: {made.why_not}{hint}", err=True)
        sys.exit(made.outcome.judgement.exit_code or 1)
    if made.why_not:
        click.echo(f"warning: {made.why_not}, and the kit says so", err=True)
    count = f"{made.kit.cases} data set{'' if made.kit.cases == 1 else 's'}"
    click.echo(f"{place}: written, {model} with {count}; kit.json has sha256 {made.sha256}")


@cli.command(name="replay")
@click.argument("kit", type=click.Path(path_type=Path))
@click.option(
    "--provider",
    "providers",
    multiple=True,
    default=["CPUExecutionProvider"],
    show_default=True,
    help="ONNX Runtime execution provider; may be repeated, in order of preference.",
)
@click.option("--python", metavar="PATH", help="The interpreter that has numpy, onnx and onnxruntime.")
def replay_(kit: Path, providers: tuple[str, ...], python: str | None) -> None:
    """Hold KIT against ONNX Runtime on this machine, without torch: files, then every data set.

    Exit codes: 0 conforms, 1 does not, 2 the kit was changed or cannot be replayed here.
    """
    from export_gate.kit.replay import replay, report
    from export_gate.report.escape import one_line

    replayed = replay(kit, providers, python, os.environ)
    for line in report(replayed):
        click.echo(one_line(line))
    sys.exit(replayed.exit_code)


@cli.command()
@click.option("--results", is_flag=True, help="Of results.json instead.")
def schema(results: bool) -> None:
    """Print the JSON Schema of export-gate.yml."""
    import json

    from export_gate.config import json_schema
    from export_gate.report.results import results_schema

    click.echo(json.dumps(results_schema() if results else json_schema(), indent=2))


@cli.command(name="rules")
def rules_() -> None:
    """List what is checked, with severities."""
    from export_gate.rules import CATALOGUE

    width = max(len(rule.name) for rule in CATALOGUE)
    for rule in CATALOGUE:
        click.echo(f"{rule.name:{width}}  {rule.severity:9}  {rule.summary}")


@cli.command()
@click.argument("factory")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("export-gate.yml"),
    show_default=True,
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@python_option
def init(factory: str, output: Path, force: bool, python: str | None) -> None:
    """Write a starter config for FACTORY (module:attribute or path.py:attribute)."""
    from export_gate import pipeline, starter

    if output.exists() and not force:
        raise UserError(f"{output}: is there already; --force overwrites it")
    order = pipeline.Order(config=output, python=python, environment=dict(os.environ))
    text = starter.starter_config(factory, output, order)
    save_text(text, output)
    click.echo(f"{output}: written and valid; look it over, then `export-gate run`")


def find_config(named: Path | None) -> Path:
    """The config to use.

    Raises:
        UserError: none was named and there is none here.
    """
    if named is not None:
        return named
    for name in DEFAULT_CONFIGS:
        if Path(name).exists():
            return Path(name)
    raise UserError(
        f"there is no {DEFAULT_CONFIGS[0]} here; write one with `export-gate init FACTORY` or name it with -c"
    )


def color() -> bool:
    """Whether standard output shows colours: a terminal, unless NO_COLOR is set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def render_as(outcome: Outcome, format_: str, *, is_terminal: bool) -> str:
    """The outcome in the format."""
    from export_gate.report.formats import formatted

    return formatted(outcome.results, outcome.report, format_, color=is_terminal and color())


def save_text(text: str, path: Path) -> None:
    """Write a file that the user named.

    Raises:
        UserError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error


def show(outcome: Outcome) -> None:
    """Print the terminal report."""
    click.echo(render_as(outcome, "terminal", is_terminal=True), nl=False, color=True if color() else None)


@contextmanager
def follow(*, quiet: bool) -> Iterator[Callable[[Interpreter, tuple[Job, ...]], Listener]]:
    """Progress on standard error: live on a terminal, plain lines elsewhere, nothing where quiet."""
    from export_gate.progress import LiveProgress, PlainProgress

    def say(text: str) -> None:
        click.echo(text, err=True)

    def header(python: Interpreter, jobs: tuple[Job, ...]) -> str:
        count = f"{len(jobs)} {'model' if len(jobs) == 1 else 'models'}"
        return f"export-gate {__version__}: {count} with {python.path} ({python.reason})"

    if quiet:
        yield lambda _python, _jobs: lambda _event: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[what]}"),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:

            def announce(python: Interpreter, jobs: tuple[Job, ...]) -> Listener:
                progress.console.print(header(python, jobs), markup=False, highlight=False)
                return LiveProgress(progress)

            yield announce
    else:

        def announce_plainly(python: Interpreter, jobs: tuple[Job, ...]) -> Listener:
            say(header(python, jobs))
            return PlainProgress(say)

        yield announce_plainly


def main() -> None:
    """Run the command line; exceptions become exit codes here and nowhere else."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as ended:
        sys.exit(ended.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE)
    except UserError as error:
        click.echo(str(error) + (f"\n{error.hint}" if error.hint else ""), err=True)
        sys.exit(USAGE)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted: no verdict, nothing was written", err=True)
        sys.exit(INTERRUPTED)
    except GateError as error:
        click.echo(f"{error}\nno verdict: the gate itself failed", err=True)
        sys.exit(BROKEN)
    except Exception:  # noqa: BLE001 - the last frame: a bug of ours, shown whole
        import traceback

        traceback.print_exc()
        click.echo("no verdict: this is a bug in export-gate, please report it with the lines above", err=True)
        sys.exit(BROKEN)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
