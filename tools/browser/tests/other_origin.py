"""Pages of another site: their links work, their forms do not."""

FORM = """<!doctype html><title>Other site</title>
<form method="post" action="{action}"><input type="hidden" name="token" value="{token}">
<button>Win</button></form>"""


def test_link_from_another_site_opens_the_page_for_a_signed_in_user(world):
    chrome = world.chrome
    world.sign_in("viewer")
    world.site.pages["/mail"] = f'<!doctype html><a href="{world.server.url}/jobs">Look at the jobs</a>'
    chrome.driver.get(world.site.url("/mail"))
    chrome.click_link("Look at the jobs")
    assert chrome.path == "/jobs", chrome.path
    chrome.wait_for_text(world.seeded.failing_job)


def test_form_from_another_site_is_refused(world):
    chrome = world.chrome
    job = world.seeded.morning_job
    world.sign_in("admin", f"/jobs/{job}")
    # Even an attacker who knows the token of the form is refused.
    token = chrome.one("input[name=token]").get_attribute("value")
    action = f"{world.server.url}/ui/jobs/{job}/pause"
    world.site.pages["/attack"] = FORM.format(action=action, token=token)
    chrome.driver.get(world.site.url("/attack"))
    chrome.click_button("Win")
    assert "another site" in chrome.text(), chrome.text()
    assert not world.server.get(f"/api/v1/jobs/{job}")["is_paused"]


def test_page_cannot_be_shown_inside_another_page(world):
    chrome = world.chrome
    world.sign_in("viewer")
    world.site.pages["/frame"] = f'<!doctype html><iframe src="{world.server.url}/jobs"></iframe>'
    chrome.driver.get(world.site.url("/frame"))
    chrome.driver.switch_to.frame(chrome.one("iframe"))
    assert world.seeded.failing_job not in chrome.text()
    chrome.driver.switch_to.default_content()
