"""All that a test needs: a server with data, a browser and another site."""

import shutil
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import seed
from chrome import Chrome
from other_site import OtherSite
from server import TEST_OPTIONS, Server, wait_until


def add_arguments(parser):
    parser.add_argument("--binary", required=True, help="the evenkeel program")
    parser.add_argument("--folder", required=True, type=Path, help="is emptied and gets all files")


class World:
    """Starts everything on entry and stops it on exit."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder.resolve()
        self.parts = []
        self.tokens = {}
        self.numbers = count(1)

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        try:
            self.site = self._keep(OtherSite(), OtherSite.stop)
            self.server = self._keep(Server(self.binary, self.folder, TEST_OPTIONS), Server.stop)
            self.seeded = seed.fill(self.server, self.site)
            self.chrome = self._keep(Chrome(self.server, self.folder), Chrome.quit)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _keep(self, part, stop):
        self.parts.append((part, stop))
        return part

    def __exit__(self, *_):
        while self.parts:
            part, stop = self.parts.pop()
            stop(part)

    def token(self, role, tenant="default"):
        key = (role, tenant)
        if key not in self.tokens:
            self.tokens[key] = self.server.create_token(role, tenant)
        return self.tokens[key]

    def sign_in(self, role="admin", path="/", tenant="default"):
        self.role = role
        self.chrome.sign_in(self.token(role, tenant), path)

    @contextmanager
    def second_browser(self):
        """A browser with its own cookies."""
        chrome = Chrome(self.server, self.folder, f"browser-{next(self.numbers)}")
        try:
            yield chrome
        finally:
            chrome.quit()

    def create(self, kind, **fields):
        """Creates a job with a new name that begins with `kind`, and returns the name."""
        name = f"{kind}-{next(self.numbers)}"
        job = {"name": name, "executor_type": "noop", "schedule": "24h"}
        self.server.post("/api/v1/jobs", job | fields)
        return name

    def job(self, name):
        return self.server.get(f"/api/v1/jobs/{name}")

    def runs(self, job):
        """The runs of a job, newest first."""
        return self.server.get(f"/api/v1/runs?job={job}")["runs"]

    def run_with(self, job, status):
        """Waits until the newest run of a job has this status, and returns it."""
        def newest():
            runs = self.runs(job)
            return runs[0] if runs and runs[0]["status"] == status else None
        return wait_until(f"a run of {job} that has {status}", newest)

    def pages(self):
        """The paths of all pages for the role of the session."""
        return list(self.named_pages())

    def named_pages(self):
        """The paths of all pages with their names, for the role of the session."""
        paths = self.chrome.navigation()
        assert "/jobs" in paths, f"the navigation has only {paths}"
        return {path: path for path in paths} | self.seeded.pages(self.role)
