"""Fills a server with jobs, runs and other data, with hostile text in every field that takes text."""

from dataclasses import dataclass

from server import wait_until

# If a page shows this text as markup, its script sets `window.hostile`.
HOSTILE = "\"'><img src=x onerror=\"window.hostile=1\"><script>window.hostile=1</script>"
HOSTILE_NAME = "report <img src=x onerror=window.hostile=1>"
HOSTILE_TITLE = "<title>&lt;img src=x onerror=window.hostile=1&gt; news</title>"
# Jobs that all run in the same quarter of an hour.
CROWD = 60


@dataclass
class Seeded:
    """What the tests look for on pages."""

    hostile_job: str
    hostile_run: str
    failing_job: str = "hourly-import"
    morning_job: str = "morning-report"
    failure: str = "cannot reach the archive"
    other_tenant_job: str = "acme-payroll"
    other_tenant: str = "acme"


def shell(name, script, **fields):
    """A job that runs a script of the shell and does not retry it."""
    job = {"name": name, "executor_type": "shell", "max_retries": 0,
           "executor_config": {"argv": ["sh", "-c", script]}}
    return job | fields


def fill(server, site):
    create = lambda job: server.post("/api/v1/jobs", job)
    seeded = create_hostile(server, create)
    create(shell(seeded.failing_job, f"echo '{seeded.failure}' >&2; exit 1",
                 scheduling_period="1h", max_retries=1))
    create(shell("archive-backup", f"echo '{seeded.failure}' >&2; exit 1",
                 on_failure={"action": "dead_letter"}))
    create({"name": seeded.morning_job, "executor_type": "noop",
            "schedule": {"kind": "cron", "expression": "0 9 * * *"}, "timezone": "Europe/Berlin"})
    create({"name": "paused-export", "executor_type": "noop", "schedule": "30m", "enabled": False})
    for number in range(3):
        create(shell(f"long-import-{number}", "echo started; exec sleep 600",
                     concurrency_key="import", concurrency_limit=1))
    create_crowd(server)
    create_crawl(server, create, site)
    acme = server.create_token("admin", seeded.other_tenant)
    job = {"name": seeded.other_tenant_job, "executor_type": "noop", "schedule": "1h"}
    server.post("/api/v1/jobs", job, acme)
    for job in [seeded.failing_job, "archive-backup"]:
        wait_for_run(server, job, "failed")
    wait_for_items(server, "/api/v1/conditions", "jobs", 3)
    wait_for_items(server, "/api/v1/failures", "failures", 2)
    wait_for_items(server, "/api/v1/dead-letters", "dead_letters", 2)
    return seeded


def create_hostile(server, create):
    script = "printf '%s\\n' \"$0\"; printf '%s\\n' \"$0\" >&2; exit 1"
    job = shell(HOSTILE_NAME, script, description=HOSTILE, payload={HOSTILE: [HOSTILE]},
                metadata={HOSTILE: HOSTILE}, source_name=HOSTILE,
                on_failure={"action": "dead_letter"})
    job["executor_config"]["argv"].append(HOSTILE)
    id = create(job)["id"]
    server.post("/api/v1/targets", {"name": HOSTILE, "url": "http://localhost/<script>"})
    server.post("/api/v1/api-keys", {"name": HOSTILE, "role": "viewer"})
    run = wait_for_run(server, id, "failed")
    return Seeded(hostile_job=id, hostile_run=run["id"])


def create_crowd(server):
    """Creates jobs in one slot. A rebalance may move them, because they lose their preference."""
    night = {"start": "03:00:00", "end": "03:15:00"}
    jobs = [{"name": f"nightly-{number:02}", "executor_type": "noop", "schedule": "24h",
             "prefer_window": night} for number in range(CROWD)]
    server.post("/api/v1/jobs/bulk", {"jobs": jobs})
    for job in jobs:
        server.call("PATCH", f"/api/v1/jobs/{job['name']}", {"prefer_window": None})


def create_crawl(server, create, site):
    """Crawls a page whose title is hostile."""
    site.pages["/news"] = f"<!doctype html>{HOSTILE_TITLE}<p>{HOSTILE_NAME}"
    create({"name": "crawl-news", "url": site.address("/news"), "schedule_enabled": False})
    wait_for_run(server, "crawl-news", "completed")


def wait_for_run(server, job, status):
    """Returns the newest run of a job, once it has this status."""
    def newest():
        found = server.get(f"/api/v1/jobs/{job}/executions?limit=1")["executions"]
        return found[0] if found and found[0]["status"] == status else None
    return wait_until(f"a run of {job} that has {status}", newest, 60)


def wait_for_items(server, path, name, count):
    """Waits until a list has this many items. The server writes some lists in the background."""
    wait_until(f"{count} items of {path}", lambda: len(server.get(path)[name]) >= count, 60)
