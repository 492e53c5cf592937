"""Debian's Chromium, driven by Selenium without a download."""

import json
import shutil
import urllib.parse

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

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
    # No test depends on the network.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
]

# Runs before the scripts of each page, and records what the policy of the page has blocked.
RECORD_VIOLATIONS = """
window.policyViolations = [];
document.addEventListener('securitypolicyviolation', event => window.policyViolations.push(
    event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile));
"""


class Chrome:
    """A browser window that shows the pages of one server."""

    def __init__(self, server, folder):
        self.server = server
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in [*ARGUMENTS, f"--user-data-dir={folder / 'profile'}"]:
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
        self.driver.get("about:blank")
        self.command("Network.clearBrowserCookies")
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

    def open(self, path):
        self.driver.get(self.server.url + path)

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

    def click(self, find):
        """Clicks on what `find` returns, and waits until the next page is shown.

        A live update may replace the element between `find` and the click; it is then found again.
        """
        page = self.one("html")
        self.wait("a click", lambda: find().click() is None)
        self.wait("the next page", lambda: self.one("html") != page)
        self.wait("its content", lambda: self.run("return document.readyState") == "complete")

    def link(self, text):
        return self.wait(f"a link {text!r}", lambda: self.driver.find_elements(By.LINK_TEXT, text))[0]

    def button(self, text):
        buttons = lambda: [it for it in self.find("button") if it.text.strip() == text]
        return self.wait(f"a button {text!r}", buttons)[0]

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

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
