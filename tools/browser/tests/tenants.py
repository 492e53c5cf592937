"""Two tenants see only their own jobs."""


def test_each_tenant_sees_only_its_own_jobs(world):
    seeded, chrome = world.seeded, world.chrome
    for tenant, own, other in [
        ("default", seeded.failing_job, seeded.other_tenant_job),
        (seeded.other_tenant, seeded.other_tenant_job, seeded.failing_job),
    ]:
        chrome.reset()
        world.sign_in("admin", "/jobs", tenant)
        chrome.wait_for_text(own)
        for path in chrome.navigation():
            chrome.open(path)
            assert other not in chrome.driver.page_source, f"{tenant} sees {other} on {path}"
        chrome.open(f"/jobs/{other}")
        assert "Not found" in chrome.text(), chrome.text()
        chrome.open(f"/jobs/{own}")
        assert "Not found" not in chrome.text(), chrome.text()
