"""Signing in, and what each role sees."""

COMMANDS = ["Run now", "Pause", "Retry"]


def test_wrong_token_is_refused_with_a_reason(world):
    chrome = world.chrome
    chrome.open("/sign-in")
    chrome.one("#credential").send_keys("wrong")
    chrome.click_button("Sign in")
    assert chrome.path == "/sign-in"
    assert chrome.one("[role=alert]").text, "the page gives no reason"


def test_visitor_signs_in_and_gets_the_page_that_was_asked_for(world):
    chrome = world.chrome
    chrome.open("/jobs?status=paused")
    assert chrome.path.startswith("/sign-in?next="), chrome.path
    chrome.one("#credential").send_keys(world.server.token)
    chrome.click_button("Sign in")
    assert chrome.path == "/jobs?status=paused", chrome.path
    chrome.wait_for_text("paused-export")


def test_viewer_sees_no_commands(world):
    chrome = world.chrome
    world.sign_in("viewer")
    for path in world.pages():
        chrome.open(path)
        actions = chrome.run("return [...document.forms].filter(form => form.method == 'post')"
                             ".map(form => new URL(form.action).pathname)")
        assert set(actions) <= {"/ui/sign-out"}, f"a viewer sees commands on {path}: {actions}"


def test_operator_sees_the_commands_of_a_job_and_can_use_them(world):
    chrome = world.chrome
    world.sign_in("operator", f"/jobs/{world.seeded.morning_job}")
    chrome.click_button("Pause")
    chrome.one("[role=status]")
    assert world.server.get(f"/api/v1/jobs/{world.seeded.morning_job}")["is_paused"]
    chrome.click_button("Resume")
    chrome.button("Pause")
    assert not world.server.get(f"/api/v1/jobs/{world.seeded.morning_job}")["is_paused"]
