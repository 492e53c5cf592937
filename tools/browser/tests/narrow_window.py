"""Pages in windows of 360 to 1,920 pixels."""

WIDTHS = [360, 768, 1280, 1920]
SCROLLS = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"

WIDEST = """
const right = it => it.getBoundingClientRect().right;
const isInside = it => [...document.querySelectorAll('main table, main pre, .axis')]
    .some(scrolling => scrolling !== it && scrolling.contains(it) && scrolling.scrollWidth > scrolling.clientWidth);
const found = [...document.querySelectorAll('main *, header *')].filter(it => !isInside(it))
    .sort((a, b) => right(b) - right(a));
return found.slice(0, 3).map(it => it.outerHTML.slice(0, 120)).join(' | ');
"""
# What a user must be able to reach in every window.
REACHABLE = """
return [...document.querySelectorAll('header a, header summary')].filter(it => it.offsetParent
    && it.getBoundingClientRect().right > innerWidth).map(it => it.outerHTML.slice(0, 100));
"""


def test_no_page_scrolls_horizontally(world):
    chrome = world.chrome
    world.sign_in("admin")
    wide = []
    for path in world.pages():
        chrome.open(path)
        for width in WIDTHS:
            chrome.resize(width, 800)
            if chrome.run(SCROLLS) > 0:
                wide.append(f"{path} at {width} by {chrome.run(SCROLLS)} pixels: {chrome.run(WIDEST)}")
    assert not wide, "these pages are wider than the window:\n" + "\n".join(wide)


def test_navigation_and_menus_can_be_reached_in_a_narrow_window(world):
    chrome = world.chrome
    world.sign_in("admin", "/jobs")
    chrome.resize(WIDTHS[0], 800)
    assert not chrome.run(REACHABLE), chrome.run(REACHABLE)
    chrome.one(".more > summary").click()
    chrome.click_link("Dead letters")
    assert chrome.path == "/dead-letters"
    chrome.sign_out()
    assert chrome.path == "/sign-in"
