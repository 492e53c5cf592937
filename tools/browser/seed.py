"""Fills a server with jobs, runs and other data."""

from dataclasses import dataclass

import hostile
from hostile import wait_for_run
from server import wait_until

# Jobs that all run in the same quarter of an hour.
CROWD = 60


@dataclass
class Seeded:
    """What the tests look for on pages."""

    hostile_job: str
    hostile_run: str
    crawled_page: str
    api_key: str
    running_run: str
    plan: str
    failing_job: str = "hourly-import"
    morning_job: str = "morning-report"
    failure: str = "cannot reach the archive"
    other_tenant_job: str = "acme-payroll"
    other_tenant: str = "acme"

    def pages(self, role):
        """Pages that the navigation does not have, with their names, for a role."""
        job = f"/jobs/{self.hostile_job}"
        pages = {
            job: "job",
            f"/jobs/{self.failing_job}?at=09:00": "job-at-nine",
            f"/runs/{self.hostile_run}": "run",
            f"/runs/{self.running_run}": "run-running",
            f"/pages/{self.crawled_page}": "crawled-page",
            f"/balance?rebalance={self.plan}": "rebalance",
            "/balance?day=2026-10-25&tz=Europe/Berlin": "balance-day",
            "/docs/api/try?method=POST&path=/api/v1/jobs": "api-try",
        }
        if role != "viewer":
            pages |= {
                "/jobs/new": "job-new",
                "/jobs/new?as=json": "job-new-json",
                f"{job}/edit": "job-edit",
                f"{job}/edit?as=json": "job-edit-json",
                f"{job}/confirm/delete": "job-delete",
                "/job-commands?action=pause&name_prefix=nightly-": "job-commands",
                "/dead-letters/confirm?action=redrive": "dead-letters-redrive",
            }
        if role == "admin":
            pages[f"/access/revoke/{self.api_key}?name=ci"] = "access-revoke"
        return pages


def shell(name, script, **fields):
    """A job that runs a script of the shell and does not retry it."""
    job = {"name": name, "executor_type": "shell", "max_retries": 0,
           "executor_config": {"argv": ["sh", "-c", script]}}
    return job | fields


def fill(server, site):
    create = lambda job: server.post("/api/v1/jobs", job)
    create_failing(create)
    create({"name": Seeded.morning_job, "executor_type": "noop",
            "schedule": {"kind": "cron", "expression": "0 9 * * *"}, "timezone": "Europe/Berlin"})
    create({"name": "paused-export", "executor_type": "noop", "schedule": "30m", "enabled": False})
    for number in range(3):
        create(shell(f"long-import-{number}", "echo started; exec sleep 1200",
                     concurrency_key="import", concurrency_limit=1))
    create_crowd(server)
    create_other_tenant(server)
    job, run, page, key = hostile.fill(server, site, create)
    for name in [Seeded.failing_job, "archive-backup"]:
        wait_for_run(server, name, "failed")
    running = lambda: server.get("/api/v1/runs?status=running")["runs"]
    wait_for_items(server, "/api/v1/conditions", "jobs", 3)
    wait_for_items(server, "/api/v1/failures", "failures", 2)
    wait_for_items(server, "/api/v1/dead-letters", "dead_letters", 2)
    return Seeded(hostile_job=job, hostile_run=run, crawled_page=page, api_key=key,
                  running_run=wait_until("a running job", running)[0]["id"],
                  plan=server.post("/api/v1/scheduler/rebalance/preview")["plan_id"])


def create_failing(create):
    script = f"echo '{Seeded.failure}' >&2; exit 1"
    create(shell(Seeded.failing_job, script, scheduling_period="1h", max_retries=1))
    create(shell("archive-backup", script, on_failure={"action": "dead_letter"}))


def create_crowd(server):
    """Creates jobs in one slot. A rebalance may move them, because they lose their preference."""
    night = {"start": "03:00:00", "end": "03:15:00"}
    jobs = [{"name": f"nightly-{number:02}", "executor_type": "noop", "schedule": "24h",
             "prefer_window": night} for number in range(CROWD)]
    server.post("/api/v1/jobs/bulk", {"jobs": jobs})
    for job in jobs:
        server.call("PATCH", f"/api/v1/jobs/{job['name']}", {"prefer_window": None})


def create_other_tenant(server):
    acme = server.create_token("admin", Seeded.other_tenant)
    job = {"name": Seeded.other_tenant_job, "executor_type": "noop", "schedule": "1h"}
    server.post("/api/v1/jobs", job, acme)


def wait_for_items(server, path, name, count):
    """Waits until a list has this many items. The server writes some lists in the background."""
    wait_until(f"{count} items of {path}", lambda: len(server.get(path)[name]) >= count, 60)
