"""Every page: no error, no blocked content, no request to another host, no barrier."""

from accessibility import violations


def test_every_page_opens_without_errors_and_without_other_hosts(world):
    world.sign_in("admin")
    report(world, world.pages(), problems_of_loading)


def test_every_page_is_accessible_in_light_and_dark(world):
    world.sign_in("admin")
    report(world, world.pages(), barriers)


def test_sign_in_page_is_accessible(world):
    report(world, ["/sign-in"], lambda world: problems_of_loading(world) + barriers(world))


def report(world, paths, problems_of):
    """Opens each page and fails with the problems of all pages."""
    found = []
    for path in paths:
        world.chrome.open(path)
        found += [f"{path}: {problem}" for problem in problems_of(world)]
    assert not found, "\n".join(found)


def problems_of_loading(world):
    chrome = world.chrome
    found = [f"console: {message}" for message in chrome.console()]
    found += [f"policy: {it}" for it in chrome.run("return window.policyViolations")]
    found += [f"request to {host}" for host in chrome.requested_hosts() - {world.server.host}]
    if len(chrome.find("h1")) != 1 or not chrome.heading():
        found.append("the page needs one heading")
    status = chrome.run("return performance.getEntriesByType('navigation')[0].responseStatus")
    if status != 200:
        found.append(f"status {status}")
    return found


def barriers(world):
    found = []
    for scheme in ["light", "dark"]:
        world.chrome.media(scheme)
        found += [f"{scheme}: {violation}" for violation in violations(world.chrome)]
    return found
