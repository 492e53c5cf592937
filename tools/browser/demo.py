"""The pages of a server with the sample jobs of `serve --demo`."""


def first(server, path, name):
    found = server.get(path)[name]
    return found[0]["id"] if found else None


def demo_pages(server):
    """Pages that the navigation does not have, with their names."""
    at_risk = first(server, "/api/v1/conditions?limit=1", "jobs")
    failed = first(server, "/api/v1/runs?status=failed&limit=1", "runs")
    running = first(server, "/api/v1/runs?status=running&limit=1", "runs")
    busy = server.get("/api/v1/runs?status=completed&limit=1")["runs"][0]["job_id"]
    plan = server.post("/api/v1/scheduler/rebalance/preview")["plan_id"]
    pages = {
        f"/jobs/{busy}": "job",
        f"/jobs/{at_risk}?at=09:00": "job-at-nine",
        f"/runs/{failed}": "run",
        f"/balance?rebalance={plan}": "rebalance",
        "/balance?by=cost": "balance-cost",
        "/jobs/new": "job-new",
        f"/jobs/{busy}/edit": "job-edit",
        f"/jobs/{busy}/edit?as=json": "job-edit-json",
        f"/jobs/{busy}/confirm/delete": "job-delete",
        "/job-commands?action=pause": "job-commands",
        "/docs/api/try?method=POST&path=/api/v1/jobs": "api-try",
    }
    if running:
        pages[f"/runs/{running}"] = "run-running"
    return pages
