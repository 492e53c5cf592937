"""Commands for many jobs, and for dead letters: counted first, confirmed, then applied."""

from seed import shell
from server import wait_until


def test_bulk_command_shows_its_count_first(world):
    chrome = world.chrome
    names = [world.create("bulk-pause") for _ in range(3)]
    world.sign_in("operator", "/jobs?name_prefix=bulk-pause-")
    chrome.unfold("Command for all jobs that match")
    chrome.fill({"action": "Pause"})
    chrome.click_button("Count the jobs…")
    assert chrome.heading() == "Pause 3 jobs?", chrome.text()
    assert "bulk-pause-" in chrome.text()
    assert not any(world.job(name)["is_paused"] for name in names), "the count applied the command"
    chrome.click_button("Pause 3 jobs")
    assert "3 jobs" in chrome.notice(), chrome.notice()
    assert all(world.job(name)["is_paused"] for name in names)


def test_bulk_command_sets_a_priority(world):
    chrome, name = world.chrome, world.create("bulk-priority")
    world.sign_in("operator", "/jobs?name_prefix=bulk-priority-")
    chrome.unfold("Command for all jobs that match")
    chrome.fill({"action": "Set priority", "priority": "91"})
    chrome.click_button("Count the jobs…")
    chrome.click_button("Set priority 1 job")
    assert world.job(name)["priority"] == 91


def test_bulk_command_that_fits_no_job_says_so(world):
    chrome = world.chrome
    world.create("bulk-none")
    world.sign_in("operator", "/job-commands?action=resume&name_prefix=bulk-none-")
    assert chrome.heading() == "There is no job to change"
    assert not chrome.find("main form[method=post]")


def dead_letter(world, kind):
    """Creates a job whose run has failed for good, and returns its name and the id of the letter."""
    fields = shell("", "echo broken >&2; exit 1", schedule="24h", on_failure={"action": "dead_letter"})
    del fields["name"]
    name = world.create(kind, **fields)
    world.server.post(f"/api/v1/jobs/{name}/trigger")
    found = wait_until(f"a dead letter of {name}", lambda: letters(world, name))
    return name, found[0]["id"]


def letters(world, job):
    return world.server.get(f"/api/v1/dead-letters?job_id={job}")["dead_letters"]


def click_in_row(chrome, job, label):
    row = f"//tr[th/a='{job}']//button[.='{label}']"
    chrome.click(lambda: chrome.driver.find_element("xpath", row))


def test_dead_letter_is_redriven(world):
    chrome = world.chrome
    job, letter = dead_letter(world, "redrive")
    world.sign_in("operator", f"/dead-letters?job={job}")
    click_in_row(chrome, job, "Redrive")
    assert "1 dead letter redriven" in chrome.notice(), chrome.notice()
    assert world.server.get(f"/api/v1/dead-letters/{letter}")["redriven_at"]
    assert any(run["origin"] == "redrive" for run in world.runs(job)), world.runs(job)


def test_dead_letter_is_deleted(world):
    chrome = world.chrome
    job, _ = dead_letter(world, "delete-letter")
    world.sign_in("operator", f"/dead-letters?job={job}")
    click_in_row(chrome, job, "Delete")
    assert "1 dead letter deleted" in chrome.notice(), chrome.notice()
    assert not letters(world, job)


def test_all_dead_letters_that_match_are_counted_and_deleted(world):
    chrome = world.chrome
    job, _ = dead_letter(world, "delete-all")
    kept = len(world.server.get("/api/v1/dead-letters?limit=1000")["dead_letters"]) - 1
    world.sign_in("operator", f"/dead-letters?job={job}")
    chrome.click_link("Delete all that match…")
    assert chrome.heading() == "Delete 1 dead letter?", chrome.text()
    assert len(letters(world, job)) == 1
    chrome.click_button("Delete 1 dead letter")
    assert "1 dead letter deleted" in chrome.notice(), chrome.notice()
    assert not letters(world, job)
    assert len(world.server.get("/api/v1/dead-letters?limit=1000")["dead_letters"]) == kept
