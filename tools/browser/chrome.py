"""Debian's Chromium, driven by Selenium without a download."""

import json
import shutil
import urllib.parse

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

# Long enough for a busy machine.
WAIT_LIMIT = 15
WIDE = (1280, 900)

ARGUMENTS = [
    "--headless=new",
    # Chromium refuses to run as root with its sandbox, and containers have a small /dev/shm.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
# A host name that browsers do not trust like `localhost`: pages over plain HTTP get no locks.
PLAIN_HOST = "evenkeel.test"
# No test depends on the network.
RESOLVER = f"MAP {PLAIN_HOST} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"

# Runs before the scripts of each page, and records what the policy of the page has blocked.
RECORD_VIOLATIONS = """
window.policyViolations = [];
document.addEventListener('securitypolicyviolation', event => window.policyViolations.push(
    event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile));
"""


class Chrome:
    """A browser that shows the pages of one server. `name` is the folder of its profile."""

    def __init__(self, server, folder, name="first-browser"):
        self.server, self.url = server, server.url
        folder = folder / name
        folder.mkdir()
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        own = [f"--host-resolver-rules={RESOLVER}", f"--user-data-dir={folder / 'profile'}"]
        for argument in [*ARGUMENTS, *own]:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = Service(shutil.which("chromedriver"), log_output=str(folder / "driver.log"))
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_page_load_timeout(30)
        self.driver.set_script_timeout(30)
        self.command("Page.addScriptToEvaluateOnNewDocument", source=RECORD_VIOLATIONS)

    def command(self, name, **parameters):
        """Sends a command of the Chrome DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, parameters)

    def quit(self):
        self.driver.quit()

    def reset(self):
        """Forgets the session, the logs and the settings of the previous test."""
        first, *others = self.driver.window_handles
        for window in others:
            self.driver.switch_to.window(window)
            self.driver.close()
        self.driver.switch_to.window(first)
        self.url = self.server.url
        self.driver.get("about:blank")
        self.command("Network.clearBrowserCookies")
        self.command("Storage.clearDataForOrigin", origin=self.url, storageTypes="all")
        self.resize(*WIDE)
        self.media()
        self.console()
        self.requested_hosts()

    def resize(self, width, height):
        """Sets the size of the page, which may be narrower than the smallest window."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=1, mobile=False)

    def media(self, scheme="light", forced="none"):
        features = [{"name": "prefers-color-scheme", "value": scheme},
                    {"name": "forced-colors", "value": forced}]
        self.command("Emulation.setEmulatedMedia", features=features)

    def use_plain_host(self):
        """Opens further pages under a host name instead of an address of this machine."""
        port = urllib.parse.urlsplit(self.server.url).port
        self.url = f"http://{PLAIN_HOST}:{port}"

    def open(self, path):
        self.driver.get(self.url + path)

    @property
    def path(self):
        parts = urllib.parse.urlsplit(self.driver.current_url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def wait(self, description, check):
        """Returns the first true result of `check`."""
        waiting = WebDriverWait(self.driver, WAIT_LIMIT, poll_frequency=0.05,
                                ignored_exceptions=[StaleElementReferenceException])
        try:
            return waiting.until(lambda _: check())
        except TimeoutException:
            raise AssertionError(
                f"timed out: {description}; at {self.path}: {self.text()[:600]}") from None

    def find(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.wait(f"an element {selector}", lambda: self.find(selector))[0]

    def text(self):
        """What a user can read on the page."""
        bodies = self.find("body")
        return bodies[0].text if bodies else ""

    def wait_for_text(self, text):
        self.wait(f"the text {text!r}", lambda: text in self.text())

    def click_link(self, text):
        self.click(lambda: self.link(text))

    def click_button(self, text):
        self.click(lambda: self.button(text))

    def fill(self, fields):
        """Sets fields of the shown forms, by their names."""
        for name, value in fields.items():
            field = self.one(f"main [name='{name}']:not([type=hidden])")
            if field.tag_name == "select":
                Select(field).select_by_visible_text(value)
            else:
                field.clear()
                field.send_keys(value)

    def sign_out(self):
        self.one("header summary:has(+ div form[action='/ui/sign-out'])").click()
        self.click_button("Sign out")

    def fill_zone(self, name):
        """Chooses the zone in which pages show times."""
        self.one("header summary:has(+ div form.zone)").click()
        Select(self.one("header select[name=tz]")).select_by_visible_text(name)
        self.click(lambda: self.one("header form.zone button"))

    def notice(self):
        """What the page says about the command that was just sent."""
        return self.text_of("main .notice[role=status]")

    def heading(self):
        return self.text_of("h1")

    def text_of(self, selector):
        """Reads an element at once, because a live update may replace it at any time."""
        texts = "return [...document.querySelectorAll(arguments[0])].map(it => it.innerText)"
        return self.wait(f"an element {selector}", lambda: self.run(texts, selector))[0]

    def unfold(self, summary):
        """Opens a part of the page that is closed at first."""
        closed = lambda: [it for it in self.find("main summary") if it.text == summary]
        self.wait(f"{summary!r}", closed)[0].click()

    def click(self, find):
        """Clicks on what `find` returns, and waits until the next page is shown.

        A live update may replace the element between `find` and the click; it is then found again.
        """
        page = self.one("html")
        self.wait("a click", lambda: find().click() is None)
        self.wait("the next page", lambda: self.one("html") != page)
        self.wait("its content", lambda: self.run("return document.readyState") == "complete")

    def press(self, *keys):
        """Presses keys where the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self):
        return self.driver.switch_to.active_element

    def link(self, text):
        return self.wait(f"a link {text!r}", lambda: self.driver.find_elements(By.LINK_TEXT, text))[0]

    def button(self, text):
        buttons = lambda: [it for it in self.find("button") if it.text.strip() == text]
        return self.wait(f"a button {text!r}", buttons)[0]

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def run_async(self, script, *arguments):
        """Returns what the script passes to `done`."""
        script = "const done = arguments[arguments.length - 1];" + script
        return self.driver.execute_async_script(script, *arguments)

    def send_form(self, path, **fields):
        """Sends a form as a script of the shown page could. Returns the status and the answer."""
        return self.run_async("""
            const token = document.querySelector('input[name=token]').value;
            const body = new URLSearchParams({token, ...arguments[1]});
            fetch(arguments[0], {method: 'POST', body})
                .then(async answer => done([answer.status, await answer.text()]),
                      error => done([0, String(error)]));""", path, fields)

    def sign_in(self, credential, path="/"):
        self.open(f"/sign-in?next={urllib.parse.quote(path, safe='')}")
        self.one("#credential").send_keys(credential)
        self.click_button("Sign in")
        assert self.path == path, f"signing in led to {self.path}: {self.text()[:300]}"

    def navigation(self):
        """The paths of the links to pages."""
        links = [link.get_attribute("href") for link in self.find("nav a")]
        return [urllib.parse.urlsplit(link).path for link in links]

    def console(self):
        """Errors and warnings in the console since the last call."""
        entries = self.driver.get_log("browser")
        return [it["message"] for it in entries if it["level"] in ("SEVERE", "WARNING")]

    def requested_hosts(self):
        """The hosts to which the browser has sent requests since the last call."""
        hosts = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                parts = urllib.parse.urlsplit(message["params"]["request"]["url"])
                if parts.scheme not in ("data", "about", "blob"):
                    hosts.add(parts.netloc)
        return hosts
