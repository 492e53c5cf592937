"""Two tenants see only their own jobs."""


def tenants(world):
    """Each tenant with one of its jobs and a job of the other one."""
    seeded = world.seeded
    return [("default", seeded.failing_job, seeded.other_tenant_job),
            (seeded.other_tenant, seeded.other_tenant_job, seeded.failing_job)]


def sees_only_its_own(chrome, tenant, own, other):
    chrome.open("/jobs")
    chrome.wait_for_text(own)
    for path in chrome.navigation():
        chrome.open(path)
        assert other not in chrome.driver.page_source, f"{tenant} sees {other} on {path}"
    for path in [f"/jobs?q={other}", f"/runs?job={other}"]:
        chrome.open(path)
        assert not chrome.find("main table"), chrome.text()
    for path in [f"/jobs/{other}", f"/jobs/{other}/edit", f"/jobs/{other}/confirm/delete"]:
        chrome.open(path)
        assert "Not found" in chrome.text(), chrome.text()
    chrome.open(f"/jobs/{own}")
    assert "Not found" not in chrome.text(), chrome.text()


def test_each_tenant_sees_only_its_own_jobs_in_its_own_browser(world):
    (tenant, own, foreign), other_tenant = tenants(world)
    world.sign_in("admin", "/", tenant)
    with world.second_browser() as second:
        second.sign_in(world.token("admin", other_tenant[0]), "/")
        sees_only_its_own(world.chrome, tenant, own, foreign)
        sees_only_its_own(second, *other_tenant)
        # The pages of other tenants do not appear by live updates, either.
        second.open("/jobs")
        name = world.create("of-the-default-tenant")
        world.chrome.open("/jobs?name_prefix=of-the-default-tenant")
        world.chrome.wait_for_text(name)
        assert name not in second.text()


def test_second_tenant_in_one_browser_replaces_the_first(world):
    for tenant, own, other in tenants(world):
        world.sign_in("admin", "/jobs", tenant)
        world.chrome.wait_for_text(own)
        assert other not in world.chrome.text()
        assert f"admin · {tenant}" in world.chrome.text()


def test_commands_of_one_tenant_do_not_reach_the_other(world):
    job, run = world.job(world.seeded.morning_job), world.seeded.running_run
    world.sign_in("admin", "/jobs", world.seeded.other_tenant)
    for path in [f"/ui/jobs/{job['id']}/pause", f"/ui/jobs/{job['name']}/delete", f"/ui/runs/{run}/cancel",
                 f"/ui/rebalance/{world.seeded.plan}/stop", f"/ui/api-keys/{world.seeded.api_key}/revoke"]:
        status, page = world.chrome.send_form(path)
        assert status == 404 and "Not found" in page, f"{path}: {status} {page}"
    assert not world.job(job["id"])["is_paused"]
    assert world.server.get(f"/api/v1/runs/{run}")["status"] == "running"
    key = next(key for key in world.server.get("/api/v1/api-keys")["api_keys"]
               if key["id"] == world.seeded.api_key)
    assert not key["revoked_at"]
