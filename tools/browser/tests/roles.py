"""What each role sees, and what the server refuses to the others."""

ACTIONS = "return [...document.forms].filter(it => it.method == 'post').map(it => new URL(it.action).pathname)"
ADMIN_PAGES = ["/audit", "/access"]


def commands_on(chrome, path):
    chrome.open(path)
    return set(chrome.run(ACTIONS)) - {"/ui/sign-out"}


def operator_forms(world):
    """Each route that changes something, with the fields of its form."""
    job = world.create("roles")
    letter = world.server.get("/api/v1/dead-letters")["dead_letters"][0]["id"]
    jobs = [(f"/ui/jobs/{job}/{action}", {})
            for action in ["trigger", "pause", "resume", "retry", "cancel", "delete"]]
    return job, jobs + [
        (f"/ui/runs/{world.seeded.running_run}/cancel", {}),
        ("/ui/jobs/save", {"as": "json", "json": "{\"name\": \"by-a-viewer\"}"}),
        ("/ui/job-commands", {"action": "delete", "name_prefix": job}),
        (f"/ui/dead-letters/{letter}/delete", {}),
        ("/ui/dead-letters/delete", {"until": "9999999999999999"}),
        ("/ui/rebalance", {}),
        ("/ui/rebalance", {"plan": world.seeded.plan}),
    ]


def refused(chrome, path, fields):
    """Asserts that the server refuses a form and says why."""
    status, page = chrome.send_form(path, **fields)
    assert status == 403 and "Your role does not allow this" in page, f"{path}: {status} {page}"
    assert "role" in page.split("role=\"alert\"")[1], page


def test_viewer_sees_no_commands(world):
    world.sign_in("viewer")
    for path in world.pages():
        actions = commands_on(world.chrome, path)
        assert actions <= {"/ui/try"}, f"a viewer sees commands on {path}: {actions}"
    for path in ["/jobs/new", f"/jobs/{world.seeded.failing_job}/edit", *ADMIN_PAGES]:
        world.chrome.open(path)
        assert world.chrome.heading() == "Your role does not allow this", world.chrome.text()


def test_viewer_is_refused_by_every_command(world):
    job, forms = operator_forms(world)
    letters = len(world.server.get("/api/v1/dead-letters")["dead_letters"])
    world.sign_in("viewer", "/jobs")
    for path, fields in forms:
        refused(world.chrome, path, fields)
    refused(world.chrome, "/ui/api-keys", {"name": "by-a-viewer", "role": "admin"})
    state = world.job(job)
    assert state["status"] == "scheduled" and not state["is_paused"], state
    assert not world.runs(job)
    assert len(world.server.get("/api/v1/dead-letters")["dead_letters"]) == letters
    assert not world.server.get("/api/v1/jobs?name_prefix=by-a-viewer")["jobs"]


def test_operator_sees_commands_but_no_pages_of_administrators(world):
    world.sign_in("operator")
    chrome, job = world.chrome, world.create("operator")
    assert not set(ADMIN_PAGES) & set(chrome.navigation())
    for path in ADMIN_PAGES:
        chrome.open(path)
        assert chrome.heading() == "Your role does not allow this", chrome.text()
    refused(chrome, "/ui/api-keys", {"name": "by-an-operator", "role": "admin"})
    refused(chrome, f"/ui/api-keys/{world.seeded.api_key}/revoke", {"name": "ci"})
    assert f"/ui/jobs/{job}/trigger" in commands_on(chrome, f"/jobs/{job}")
    assert "/ui/rebalance" in commands_on(chrome, "/balance")


def test_administrator_sees_all_pages(world):
    world.sign_in("admin")
    assert set(ADMIN_PAGES) <= set(world.chrome.navigation())
    assert "/ui/api-keys" in commands_on(world.chrome, "/access")
