"""Starts an Evenkeel server in a folder of its own, and calls its API."""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

START_LIMIT = 60
ANSWER_LIMIT = 30

# Rebalances may move new jobs at once. Jobs may run programs and call the other site of the tests.
TEST_OPTIONS = [
    "--enable-shell=default",
    "--allow-network", "127.0.0.0/8",
    "--balance-cooldown", "0s",
    "--balance-protection", "0s",
    "--dashboard-hosts", "evenkeel.test",
    "--node-name", "node <img src=x onerror=window.hostile=1>",
]


def wait_until(description, check, limit=ANSWER_LIMIT):
    """Returns the first true result of `check`. Fails if that takes longer than `limit` seconds."""
    end = time.monotonic() + limit
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"timed out after {limit} s: {description}")
        time.sleep(0.05)


class Server:
    """A server and its data directory. `stop` ends the server."""

    def __init__(self, binary, folder, options=()):
        self.binary = binary
        self.data = folder / "data"
        self.log = open(folder / "server.log", "w", encoding="utf-8")
        arguments = [binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", self.data, *options]
        self.process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log
        )
        self.url = wait_until("the start of the server", self._read_url, START_LIMIT)
        self.token = (self.data / "token").read_text().strip()

    def _read_url(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended at its start; see {self.log.name}")
        try:
            return json.loads((self.data / "server.json").read_text()).get("url")
        except (OSError, ValueError):
            return None

    @property
    def host(self):
        return urllib.parse.urlsplit(self.url).netloc

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def create_token(self, role, tenant="default", subject="tester"):
        command = [self.binary, "token", "create", "--role", role, "--tenant", tenant]
        command += ["--subject", subject, "--data-dir", self.data]
        return subprocess.check_output(command, text=True, timeout=ANSWER_LIMIT).strip()

    def call(self, method, path, body=None, token=None):
        """Returns the JSON answer of the API. Fails on a status of 400 or more."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_LIMIT) as answer:
                return json.loads(answer.read() or "null")
        except urllib.error.HTTPError as error:
            detail = error.read().decode(errors="replace")
            raise AssertionError(f"{method} {path}: {error.code} {detail}") from None

    def status(self, path, token):
        """Returns the status with which the API answers."""
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(self.url + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_LIMIT) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def get(self, path, token=None):
        return self.call("GET", path, token=token)

    def post(self, path, body=None, token=None):
        return self.call("POST", path, body, token)
