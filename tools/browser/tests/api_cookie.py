"""The API never accepts the cookie of a session."""

import re

# Probes of the server need no credential.
PUBLIC = ["/healthz", "/readyz"]

FETCH = """
const done = arguments[arguments.length - 1];
Promise.all(arguments[0].map(path => fetch(path).then(answer => [path, answer.status])))
    .then(done, error => done([['', String(error)]]));
"""


def test_every_api_route_refuses_the_cookie(world):
    world.sign_in("admin")
    document = world.server.get("/api/openapi.json")
    routes = [path for path, methods in document["paths"].items()
              if "get" in methods and path not in PUBLIC]
    assert len(routes) > 20, routes
    paths = [re.sub(r"\{\w+\}", world.seeded.hostile_job, path) for path in routes]
    answers = world.chrome.driver.execute_async_script(FETCH, paths)
    accepted = [answer for answer in answers if answer[1] != 401]
    assert not accepted, accepted
