"""Commands on the pages of a job and of a run: what the page says, and what the API says then."""

from seed import shell
from server import wait_until


def open_job(world, name, role="operator"):
    world.sign_in(role, f"/jobs/{name}")
    return world.chrome


def test_run_now_starts_a_run(world):
    name = world.create("run-now")
    chrome = open_job(world, name)
    chrome.click_button("Run now")
    assert "A run was requested" in chrome.notice()
    run = world.run_with(name, "completed")
    assert run["origin"] == "trigger", run
    assert len(world.runs(name)) == 1


def test_pause_and_resume(world):
    name = world.create("pause")
    chrome = open_job(world, name)
    chrome.click_button("Pause")
    assert "The job is paused." in chrome.notice()
    assert world.job(name)["is_paused"]
    assert "so it has no next run until it is resumed" in chrome.text()
    chrome.click_button("Resume")
    assert "The job is active again." in chrome.notice()
    assert not world.job(name)["is_paused"] and world.job(name)["next_run_at"]


def test_job_is_resumed_on_the_page_pauses(world):
    name = world.create("pause-list")
    world.server.post(f"/api/v1/jobs/{name}/pause")
    chrome = open_job(world, name)
    chrome.open("/pauses")
    row = f"//tr[th/a='{name}']//button[.='Resume']"
    chrome.click(lambda: chrome.driver.find_element("xpath", row))
    assert "The job is active again." in chrome.notice()
    assert not world.job(name)["is_paused"]


def test_retry_repeats_a_failed_run(world):
    world.site.pages["/retry"], world.site.statuses["/retry"] = "not yet", 500
    name = world.create("retry", executor_type="http", max_retries=0,
                        executor_config={"url": world.site.address("/retry")})
    world.server.post(f"/api/v1/jobs/{name}/trigger")
    failed = world.run_with(name, "failed")
    world.site.statuses["/retry"] = 200
    chrome = open_job(world, name)
    chrome.open(f"/runs/{failed['id']}")
    chrome.click_button("Retry")
    assert "A new run starts in place of the failed run." in chrome.notice()
    assert world.run_with(name, "completed")["id"] != failed["id"]
    chrome.wait("no more button to retry", lambda: not retry_buttons(chrome))
    # Only the newest run of a job can be retried.
    chrome.open(f"/runs/{failed['id']}")
    assert not retry_buttons(chrome)


def retry_buttons(chrome):
    return [button for button in chrome.find("main button") if button.text == "Retry"]


def test_cancel_asks_first_and_ends_a_job(world):
    name = world.create("cancel")
    chrome = open_job(world, name)
    chrome.click_link("Cancel job")
    assert chrome.heading() == f"Cancel job {name}?"
    assert "It never runs again" in chrome.text()
    chrome.click_link("Keep it")
    assert world.job(name)["status"] == "scheduled"
    chrome.click_link("Cancel job")
    chrome.click_button("Cancel job")
    assert "The job is cancelled" in chrome.notice()
    assert world.job(name)["status"] == "cancelled"
    assert "Cancel job" not in chrome.text()


def test_delete_asks_first_and_removes_a_job(world):
    name = world.create("delete")
    chrome = open_job(world, name)
    chrome.click_link("Delete job")
    assert chrome.heading() == f"Delete job {name}?"
    assert "This can't be undone" in chrome.text()
    chrome.click_link("Keep it")
    assert world.job(name)["status"] == "scheduled"
    chrome.click_link("Delete job")
    chrome.click_button("Delete job")
    assert "1 job" in chrome.notice(), chrome.notice()
    listed = world.server.get(f"/api/v1/jobs?name_prefix={name}")["jobs"]
    assert not listed, listed
    chrome.open(f"/jobs/{name}")
    assert chrome.heading() == "Not found", chrome.text()


def test_running_run_is_cancelled_and_its_job_stays(world):
    fields = shell("", "exec sleep 600", schedule="24h")
    del fields["name"]
    name = world.create("cancel-run", **fields)
    world.server.post(f"/api/v1/jobs/{name}/trigger")
    run = world.run_with(name, "running")
    chrome = open_job(world, name)
    chrome.open(f"/runs/{run['id']}")
    chrome.click_button("Cancel")
    assert "The run was asked to stop." in chrome.notice()
    wait_until("the end of the run", lambda: world.runs(name)[0]["status"] == "cancelled")
    assert world.job(name)["next_run_at"]
    chrome.wait_for_text("⊘ cancelled")
    chrome.click_button("Run the job again")
    assert "A run was requested" in chrome.notice()
    assert len(world.runs(name)) == 2
    world.server.post(f"/api/v1/jobs/{name}/cancel")
