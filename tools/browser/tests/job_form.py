"""Creating and editing jobs, by form and as JSON."""

import json

from selenium.webdriver.support.ui import Select


def set_json(chrome, change):
    """Changes the job in the text area as `change` does."""
    field = chrome.one("#json")
    job = json.loads(field.get_attribute("value"))
    change(job)
    field.clear()
    field.send_keys(json.dumps(job))


def test_job_is_created_by_form_after_a_preview(world):
    chrome, name = world.chrome, "made-by-form"
    world.sign_in("operator", "/jobs")
    chrome.click_link("Create a job")
    chrome.fill({"name": name, "description": "from the form", "schedule.kind": "cron",
                 "schedule.value": "0 9 * * 1-5", "timezone": "Asia/Kolkata"})
    chrome.click_button("Preview")
    assert "The next 10 times in Asia/Kolkata" in chrome.text_of("#preview")
    assert not world.server.get(f"/api/v1/jobs?name_prefix={name}")["jobs"], "the preview saved it"
    chrome.click_button("Create")
    assert chrome.notice() == "The job is created."
    job = world.job(name)
    assert job["description"] == "from the form" and job["timezone"] == "Asia/Kolkata", job
    assert job["schedule"]["expression"] == "0 9 * * 1-5", job


def test_preview_of_an_interval_shows_where_the_job_is_placed(world):
    chrome = world.chrome
    world.sign_in("operator", "/jobs/new")
    chrome.fill({"schedule.kind": "interval", "schedule.value": "24h"})
    chrome.click_button("Preview")
    preview = chrome.text_of("#preview")
    assert "Time slots with the fewest runs until then" in preview, preview


def test_form_names_the_field_that_is_wrong_and_keeps_the_others(world):
    chrome = world.chrome
    world.sign_in("operator", "/jobs/new")
    chrome.fill({"name": "wrong", "schedule.value": "every now and then", "timezone": "Mars/Olympus"})
    chrome.click_button("Create")
    assert "The job is not saved. 2 field(s) need a change." in chrome.text()
    wrong = [field.get_attribute("name") for field in chrome.find("[aria-invalid=true]")]
    assert wrong == ["schedule.value", "timezone"], wrong
    assert chrome.one("[name=name]").get_attribute("value") == "wrong"
    assert not world.server.get("/api/v1/jobs?name_prefix=wrong")["jobs"]
    chrome.fill({"schedule.value": "2h", "timezone": "UTC"})
    chrome.click_button("Create")
    assert chrome.notice() == "The job is created."


def test_job_is_created_as_json(world):
    chrome, name = world.chrome, "made-as-json"
    world.sign_in("operator", "/jobs/new")
    chrome.click_link("As JSON, with all fields")
    set_json(chrome, lambda job: job.update(name=name, metadata={"team": "news"}))
    chrome.click_button("Create")
    assert chrome.notice() == "The job is created."
    assert world.job(name)["metadata"] == {"team": "news"}


def test_json_with_an_error_is_refused_with_the_place(world):
    chrome = world.chrome
    world.sign_in("operator", "/jobs/new?as=json")
    chrome.fill({"json": "{\"name\": "})
    chrome.click_button("Create")
    assert "The text is not JSON" in chrome.text() and "line 1" in chrome.text(), chrome.text()
    assert chrome.one("#json").get_attribute("value") == "{\"name\": "


def test_edit_previews_what_changes(world):
    chrome, name = world.chrome, world.create("edit", description="old text")
    world.sign_in("operator", f"/jobs/{name}")
    chrome.click_link("Edit")
    chrome.fill({"description": "new text", "schedule.kind": "cron", "schedule.value": "30 4 * * *"})
    chrome.click_button("Preview")
    preview = chrome.text_of("#preview")
    assert "\"old text\"" in preview and "\"new text\"" in preview and "schedule" in preview, preview
    assert "04:30:00 +00:00" in preview, preview
    assert world.job(name)["description"] == "old text"
    chrome.click_button("Save")
    assert chrome.notice() == "The changes are saved."
    assert "new text" in chrome.text() and "old text" not in chrome.text(), chrome.text()
    job = world.job(name)
    assert job["description"] == "new text" and job["schedule"]["expression"] == "30 4 * * *", job


def test_edit_as_json_changes_only_what_differs(world):
    chrome, name = world.chrome, world.create("edit-json", description="kept")
    world.sign_in("operator", f"/jobs/{name}")
    chrome.click_link("Edit as JSON")
    set_json(chrome, lambda job: job.update(priority=77))
    chrome.click_button("Preview")
    rows = [row.text for row in chrome.find("#preview tbody tr")]
    assert len(rows) == 1 and rows[0].startswith("priority"), rows
    chrome.click_button("Save")
    assert chrome.notice() == "The changes are saved."
    job = world.job(name)
    assert (job["priority"], job["description"]) == (77, "kept"), job


def test_edit_does_not_overwrite_a_change_of_another_user(world):
    chrome, name = world.chrome, world.create("edit-conflict")
    world.sign_in("operator", f"/jobs/{name}/edit")
    world.server.call("PATCH", f"/api/v1/jobs/{name}", {"description": "of another user"})
    chrome.fill({"description": "mine"})
    chrome.click_button("Save")
    assert chrome.find("[role=alert]"), chrome.text()
    assert world.job(name)["description"] == "of another user"
    assert chrome.one("[name=description]").get_attribute("value") == "mine"


def test_choice_of_a_job_is_selected_on_its_form(world):
    name = world.create("edit-choice", lane="batch")
    world.sign_in("operator", f"/jobs/{name}/edit")
    chosen = Select(world.chrome.one("[name=lane]")).first_selected_option
    assert chosen.get_attribute("value") == "batch"
