"""Ten tabs over plain HTTP, where a browser opens at most six connections to a host."""

from statistics import median

LOADS = 7
# Pages load in 200 ms. A busy machine with a debug build may be slower, but other tabs must not block
# a page: a page that waits for a free connection takes seconds.
PROMISE_MS = 200
RATIO_MAX = 6
LOAD_MS = "return performance.getEntriesByType('navigation')[0].duration"
STATUS = "#live [role=status]"


def load_time(chrome, path):
    times = []
    for _ in range(LOADS):
        chrome.open(path)
        chrome.wait("the end of loading", lambda: chrome.run(LOAD_MS) > 0)
        times.append(chrome.run(LOAD_MS))
    return median(times)


def open_tabs(chrome, paths):
    """Opens each page in a tab of its own. Each tab has a window, because hidden tabs need no stream."""
    for path in paths:
        chrome.driver.switch_to.new_window("window")
        chrome.open(path)
    for window in chrome.driver.window_handles:
        chrome.driver.switch_to.window(window)
        chrome.wait("live updates", lambda: chrome.text_of(STATUS) == "Live")


def test_ten_tabs_with_two_growing_logs_load_as_fast_as_one(world):
    chrome, log = world.chrome, f"/runs/{world.seeded.running_run}"
    chrome.use_plain_host()
    world.sign_in("viewer", "/jobs")
    assert not chrome.run("return 'locks' in navigator"), "the host of this test must have no locks"
    one = load_time(chrome, "/jobs")
    open_tabs(chrome, [log, log, "/", "/runs", "/queue", "/at-risk", "/balance", "/failures", "/nodes"])
    assert len(chrome.driver.window_handles) == 10
    chrome.driver.switch_to.window(chrome.driver.window_handles[0])
    ten = load_time(chrome, "/jobs")
    print(f"measured: a page loads in {one:.0f} ms alone and in {ten:.0f} ms with ten tabs "
          f"(promise: {PROMISE_MS} ms)")
    assert ten <= RATIO_MAX * max(one, PROMISE_MS / 4), f"{one:.0f} ms became {ten:.0f} ms"


def closing_the_tab_with_the_stream_leaves_the_others_alive(world, kind):
    chrome = world.chrome
    path = f"/jobs?name_prefix={kind}-"
    world.sign_in("viewer", path)
    chrome.wait("live updates", lambda: chrome.text_of(STATUS) == "Live")
    open_tabs(chrome, [path, path])
    chrome.driver.switch_to.window(chrome.driver.window_handles[0])
    chrome.driver.close()
    for window in chrome.driver.window_handles:
        chrome.driver.switch_to.window(window)
        chrome.run("window.isSamePage = true")
    name = world.create(kind)
    for window in chrome.driver.window_handles:
        chrome.driver.switch_to.window(window)
        chrome.wait_for_text(name)
        assert chrome.run("return window.isSamePage"), "the browser loaded the page again"


def test_another_tab_takes_over_the_stream(world):
    closing_the_tab_with_the_stream_leaves_the_others_alive(world, "tab-with-locks")


def test_another_tab_takes_over_the_stream_over_plain_http(world):
    world.chrome.use_plain_host()
    closing_the_tab_with_the_stream_leaves_the_others_alive(world, "tab-without-locks")
