"""Hostile text for every field that takes text from users, programs or other sites."""

import html
import urllib.parse

from server import wait_until

# If a page shows one of these texts as markup, its script sets `window.hostile`.
TEXT = "\"'><img src=x onerror=\"window.hostile=1\"><script>window.hostile=1</script>"
NAME = "report <img src=x onerror=window.hostile=1>"
TITLE = "<title>&lt;img src=x onerror=window.hostile=1&gt; news</title>"
LINKS = "".join(f"<a href='{target}'>next</a>" for target in [
    "javascript:window.hostile=1", "/other?q=%22%3E<img src=x onerror=window.hostile=1>"])


def fill(server, site, create):
    """Returns the id of a job and of its failed run, and the ids of a crawled page and of an API key."""
    job = create(failing_job())["id"]
    create_receiver(site, create)
    create_paused(server, create)
    server.post("/api/v1/targets", {"name": TEXT, "url": f"http://localhost/{urllib.parse.quote(TEXT)}"})
    key = server.post("/api/v1/api-keys", {"name": TEXT, "role": "viewer"})["id"]
    leave_audit_entries(server, job)
    page = crawl(server, site, create)
    run = wait_for_run(server, job, "failed")["id"]
    wait_for_run(server, "hostile-receiver", "failed")
    wait_until("a job that paused itself", lambda: server.get("/api/v1/jobs/hostile-paused")["is_paused"], 60)
    return job, run, page, key


def failing_job():
    """A job whose program prints hostile text and fails with it."""
    script = "printf '%s\\n' \"$0\"; printf '%s\\n' \"$0\" >&2; exit 1"
    return {"name": NAME, "executor_type": "shell", "max_retries": 0, "description": TEXT,
            "executor_config": {"argv": ["sh", "-c", script, TEXT]}, "payload": {TEXT: [TEXT]},
            "metadata": {TEXT: TEXT}, "source_name": TEXT, "concurrency_key": TEXT,
            "on_failure": {"action": "dead_letter"}}


def create_receiver(site, create):
    """A job that sends hostile headers and gets a hostile answer."""
    site.pages["/refuse"] = TEXT
    site.headers["/refuse"] = {"X-Answer": TEXT}
    site.statuses["/refuse"] = 500
    create({"name": "hostile-receiver", "executor_type": "http", "max_retries": 0,
            "executor_config": {"url": site.address("/refuse"), "headers": {"X-Note": TEXT},
                                "body_text": TEXT}})


def create_paused(server, create):
    """A job that pauses itself with a hostile note."""
    create({"name": "hostile-paused", "executor_type": "shell", "max_retries": 0, "schedule": "24h",
            "executor_config": {"argv": ["false"]},
            "on_failure": {"action": "pause", "after": 1, "note": TEXT}})
    server.post("/api/v1/jobs/hostile-paused/trigger")


def crawl(server, site, create):
    site.pages["/news"] = f"<!doctype html>{TITLE}<p>{html.escape(NAME)}</p>{LINKS}"
    create({"name": "crawl-news", "url": site.address("/news"), "schedule_enabled": False})
    wait_for_run(server, "crawl-news", "completed")
    return server.get("/api/v1/pages")["pages"][0]["id"]


def leave_audit_entries(server, job):
    """A command of a hostile subject, and a refused one for a hostile job."""
    operator = server.create_token("operator", subject=TEXT)
    server.call("PATCH", f"/api/v1/jobs/{job}", {"description": TEXT}, operator)
    try:
        viewer = server.create_token("viewer", subject=TEXT)
        server.post(f"/api/v1/jobs/{urllib.parse.quote(TEXT, safe='')}/pause", token=viewer)
    except AssertionError as error:
        assert " 403 " in str(error), error
    else:
        raise AssertionError("a viewer may pause jobs")


def wait_for_run(server, job, status):
    """Returns the newest attempt of a job, once it has this status."""
    def newest():
        found = server.get(f"/api/v1/jobs/{job}/executions?limit=1")["executions"]
        return found[0] if found and found[0]["status"] == status else None
    return wait_until(f"a run of {job} that has {status}", newest, 60)
