"""What a real Slurm shows of itself is read as it is meant."""

from __future__ import annotations

from overnight.formats import slurmclient as c
from tests.slurm.kit import Job, call, wait_until

ASKS = """
SLURM_TIME_FORMAT=%s {end_time} > end
{job} > job
srun -N 1 -n 1 --overlap --mem=0 sleep 1000 & step=$!
until {step} | grep -q RUNNING; do sleep 0.1; done
{step} > running
kill -KILL $step
touch gone
until grep -q 'not found' gone; do
    scancel --signal=KILL $SLURM_JOB_ID.0
    sleep 0.2
    {step} > gone 2>&1
done
true
"""


def test_the_end_of_an_allocation_a_step_that_runs_and_one_that_is_gone(job: Job) -> None:
    job.submit(["-N", "1", "-t", "5"], ASKS.format(
        end_time=" ".join(c.end_time_command("$SLURM_JOB_ID")),
        job=" ".join(c.job_command("$SLURM_JOB_ID")),
        step=" ".join(c.step_command("$SLURM_JOB_ID.0")),
    ))
    assert job.wait() == "COMPLETED", job.text()
    read = {name: (job.folder / name).read_text() for name in ("end", "job", "running", "gone")}
    end = c.end_time(read["end"])
    assert end is not None
    assert 290 < end - float(call("stat", "-c", "%Y", str(job.folder / "job.sh"))) < 420
    assert c.job_state(read["job"]) == "RUNNING"
    assert not c.says_step_is_gone(f"{job.id}.0", read["running"])
    assert c.says_step_is_gone(f"{job.id}.0", read["gone"])


def test_the_gpus_that_a_job_has_on_each_node(job: Job) -> None:
    job.submit(["--gpus=3", "-n", "4", "-N", "2"], " ".join(c.job_command("$SLURM_JOB_ID")))
    job.wait()
    assert c.gpus_by_node(job.text()) == {"node1": 2, "node2": 1}


def test_a_node_that_answers_has_not_failed(job: Job) -> None:
    job.submit(["-N", "1"], "sleep 1000")
    wait_until(lambda: job.state == "RUNNING", "it runs")
    answer = call(*c.node_command("node1"))
    assert "node1" in answer and not c.says_node_has_failed("node1", answer)
