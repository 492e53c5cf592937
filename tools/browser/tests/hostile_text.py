"""Hostile text in names, payloads, outputs and titles appears as text."""

import hostile

MARKUP = "return document.querySelectorAll('img[src=x], main script, [onerror]').length"
FOREIGN_LINKS = "return [...document.links].filter(it => it.origin != location.origin).map(it => it.href)"


def check(chrome, path):
    chrome.open(path)
    assert chrome.run(MARKUP) == 0, f"hostile markup appeared on {path}"
    assert not chrome.run("return window.hostile"), f"a hostile script ran on {path}"
    assert not chrome.run(FOREIGN_LINKS), f"a link on {path} leads to another site or is a script"
    assert not chrome.console(), f"the browser reports errors on {path}"


def test_no_page_shows_hostile_text_as_markup(world):
    world.sign_in("admin")
    for path in world.pages():
        check(world.chrome, path)


def test_hostile_text_can_be_read(world):
    """Each page shows its hostile text to the user, so the test above has checked it."""
    chrome, seeded = world.chrome, world.seeded
    world.sign_in("admin")
    for path, text in [
        ("/jobs?q=report", hostile.NAME),
        ("/failures", hostile.TEXT),
        ("/dead-letters", hostile.NAME),
        ("/pauses", hostile.TEXT),
        ("/pages", "<img src=x onerror=window.hostile=1> news"),
        ("/targets", hostile.TEXT),
        ("/audit", hostile.TEXT),
        ("/access", hostile.TEXT),
        ("/nodes", "node <img src=x onerror=window.hostile=1>"),
        (f"/jobs/{seeded.hostile_job}", hostile.TEXT),
        (f"/jobs/{seeded.hostile_job}/confirm/delete", hostile.NAME),
        (f"/runs/{seeded.hostile_run}", hostile.TEXT),
        (f"/pages/{seeded.crawled_page}", hostile.NAME),
    ]:
        check(chrome, path)
        assert text in chrome.text(), f"{text} is not on {path}: {chrome.text()}"


def test_hostile_answer_of_a_receiver_appears_as_text(world):
    chrome, server = world.chrome, world.server
    run = server.get("/api/v1/jobs/hostile-receiver/executions?limit=1")["executions"][0]["id"]
    world.sign_in("admin")
    check(chrome, f"/runs/{run}")
    assert "<script>window.hostile=1</script>" in chrome.text(), chrome.text()
    check(chrome, "/jobs/hostile-receiver/edit")
    field = chrome.one("[name='executor_config.body_text']")
    assert field.get_attribute("value") == hostile.TEXT
    assert "onerror" in chrome.one("[name='executor_config.headers']").get_attribute("value")


def test_name_of_a_saved_view_appears_as_text(world):
    chrome, name = world.chrome, hostile.NAME
    world.sign_in("admin", "/jobs?name_prefix=nightly-")
    chrome.unfold("Save this view")
    chrome.fill({"view": name})
    chrome.click_button("Save")
    assert chrome.notice() == "The view is saved."
    check(chrome, "/jobs")
    chrome.click_link(name)
    assert chrome.path == "/jobs?name_prefix=nightly-", chrome.path
    chrome.click_button(f"Remove {name}")
    assert chrome.notice() == "The view is removed."
    assert name not in chrome.text_of("main"), chrome.text()


def test_hostile_text_in_forms_and_addresses_appears_as_text(world):
    chrome = world.chrome
    world.sign_in("admin", "/jobs")
    chrome.fill({"q": hostile.TEXT})
    chrome.click_button("Show")
    assert chrome.one("#q").get_attribute("value") == hostile.TEXT
    check(chrome, chrome.path)
    chrome.open("/jobs/new")
    chrome.fill({"name": hostile.TEXT, "timezone": hostile.TEXT})
    chrome.click_button("Create")
    assert chrome.one("[name=name]").get_attribute("value") == hostile.TEXT
    assert "is not a time zone" in chrome.text() and chrome.run(MARKUP) == 0
    assert not chrome.run("return window.hostile")
