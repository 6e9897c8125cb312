"""Lines of ``_tasks.jsonl``: everything about one attempt that the status file has no column for.

It is no second truth: a missing or torn line costs detail, never a task. One ``%``
format a line; ``json.dumps`` would cost more than all deciding.
"""

from __future__ import annotations

from overnight.model.outcome import Exited, Signalled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.model.report import Report
    from overnight.model.task import Task

_LINE = (
    '{"task":%d,"attempt":%d,"line":%d,"repeat":%d,"slot":%d,"engine":%d,"node":%s,'
    '"outcome":%s,"words":%s,"code":%d,"pid":%d,"start":%.3f,"elapsed":%.3f,"cpu":%.3f,'
    '"rss_kib":%d,"out_bytes":%d,"err_bytes":%d,"left_running":%d,"oom":%s,"late":%s,'
    '"settled":%s}\n'
)


def attempt_line(task: Task, report: Report, node: str, rank: int, settles: bool) -> bytes:
    """One line for an attempt, with its line feed.

    Args:
        task: What was executed.
        report: How that ended.
        node: Host, as in the status file.
        rank: Of the engine.
        settles: Whether this attempt decided the task's fate.
    """
    outcome = report.outcome
    is_oom = type(outcome) is Signalled and outcome.by_oom_killer
    if type(outcome) is Exited:  # as nearly all do
        kind = '"exited"'
        words = '"done"' if outcome.code == 0 else f'"exit code {outcome.code}"'
    else:
        kind, words = json_text(outcome.kind), json_text(outcome.words())
    return (
        _LINE % (
            report.task_id, report.attempt, task.line, task.repeat, report.slot, rank,
            json_text(node), kind, words, outcome.code,
            report.pid, report.started_at, report.elapsed_s, report.cpu_s, report.max_rss_kib,
            report.out.count, report.err.count, report.left_running,
            "true" if is_oom else "false", "true" if report.late else "false",
            "true" if settles else "false",
        )
    ).encode("ascii")


def json_text(text: str) -> str:
    r"""A JSON string; plain text, nearly all there is, costs no import.

    >>> json_text('it said "no"')
    '"it said \\"no\\""'
    """
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    from json import dumps

    return dumps(text)


def json_value(value: object) -> str:
    """What json.dumps gives for the few kinds there are; importing it costs a start 3 ms."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json_text(value)
    if isinstance(value, dict):
        pairs = ",\n ".join(f"{json_text(name)}: {json_value(one)}" for name, one in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(json_value, value))}]"
    return repr(value)
