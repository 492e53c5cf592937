"""The API never accepts the cookie of a session."""

import json
import re
from pathlib import Path

DOCUMENT = Path(__file__).parents[3] / "docs" / "openapi.json"
# Probes of the server need no credential.
PUBLIC = ["/healthz", "/readyz"]

FETCH = """
const send = ([method, path]) => {
    const body = method === 'GET' ? undefined : '{}';
    const headers = body ? {'content-type': 'application/json'} : {};
    return fetch(path, {method, body, headers, credentials: 'include', redirect: 'manual'})
        .then(answer => [method, path, answer.status]);
};
Promise.all(arguments[0].map(send)).then(done, error => done([['', '', String(error)]]));
"""


def operations(job):
    """Method and path of each operation of the API; `job` takes the place of each parameter."""
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    for path, methods in document["paths"].items():
        if path not in PUBLIC:
            filled = re.sub(r"\{\w+\}", job, path)
            yield from ([method.upper(), filled] for method in methods)


def test_every_operation_of_the_api_refuses_the_cookie(world):
    world.sign_in("admin")
    sent = list(operations(world.seeded.hostile_job))
    assert len(sent) > 60 and {method for method, _ in sent} >= {"GET", "POST", "PUT", "PATCH", "DELETE"}
    before = world.job(world.seeded.hostile_job)
    answers = world.chrome.run_async(FETCH, sent)
    accepted = [answer for answer in answers if answer[2] != 401]
    assert len(answers) == len(sent) and not accepted, accepted
    after = world.job(world.seeded.hostile_job)
    assert before["updated_at"] == after["updated_at"]


def test_cookie_is_hidden_from_scripts_and_other_sites(world):
    world.sign_in("viewer")
    cookies = world.chrome.driver.get_cookies()
    assert cookies and all(cookie["httpOnly"] for cookie in cookies), cookies
    assert all(cookie["sameSite"] == "Lax" for cookie in cookies), cookies
    assert world.chrome.run("return document.cookie") == ""
