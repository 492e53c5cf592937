"""Pages in a window of 360 pixels."""

SCROLLS = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_no_page_scrolls_horizontally_in_a_narrow_window(world):
    chrome = world.chrome
    world.sign_in("admin")
    paths = world.pages()
    chrome.resize(360, 800)
    wide = []
    for path in paths:
        chrome.open(path)
        if chrome.run(SCROLLS) > 0:
            wide.append((path, chrome.run(SCROLLS)))
    assert not wide, f"these pages are wider than the window, in pixels: {wide}"
