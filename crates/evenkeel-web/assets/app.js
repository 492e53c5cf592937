// Live updates. Every page works without this script.
"use strict";
(() => {
  const POLL = 5000; // without a stream, pages load themselves at this interval, in ms
  const SILENCE = 25000; // the server sends a message at least every 10 s
  const RETRY = 30000; // after the server refused a stream, the next try
  const SETTLE = 6000; // the server writes some figures, such as failures, up to 5 s after their event
  const FOLLOW = 2000; // a page with a growing log loads itself at this interval
  const BEAT = 1000; // the tab with the stream says so at this interval, if there are no locks
  const ELECTION = 300; // a new tab waits this long for the answer of the tab with the stream
  const PAUSED = "evenkeel-paused";
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const main = one("main");
  const bar = one("#live"); // only pages of a signed-in user have it

  // --- Loading the page again ---
  let loading = false;
  let again = false;

  // A page that answers a form can't be loaded again by its address.
  const isStatic = () => location.pathname.startsWith("/ui/") || one("main [data-live=off]");

  const isChanged = (field) => {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.options) {
      const chosen = [...field.options].some((option) => option.defaultSelected);
      return chosen ? [...field.options].some((it) => it.selected !== it.defaultSelected) : field.selectedIndex > 0;
    }
    return field.type !== "hidden" && field.value !== field.defaultValue;
  };
  const isInUse = () =>
    main.contains(document.activeElement) && document.activeElement.matches("input, textarea, select")
    || all("input, textarea, select", main).some(isChanged)
    || one("dialog[open]", main) !== null
    || (!getSelection().isCollapsed && main.contains(getSelection().anchorNode));

  // Elements of the old and the new page are the same if these texts are equal.
  const nameOf = (element) => element.id || element.getAttribute("href") || element.getAttribute("name")
    || element.textContent.trim().slice(0, 80);
  const places = (selector) => {
    const seen = new Map();
    return all(selector, main).map((element) => {
      const label = (element.tagName === "DETAILS" && one("summary", element)) || element;
      const name = `${element.tagName} ${nameOf(label)}`;
      seen.set(name, (seen.get(name) || 0) + 1);
      return [`${name} ${seen.get(name)}`, element];
    });
  };
  const showEndOfLog = () => {
    const log = one("pre.log", main);
    log?.scrollTo({ top: log.scrollHeight, behavior: "instant" });
  };
  const FOCUSABLE = "a, button, summary, [tabindex]";
  const replaceContent = (fresh) => {
    const focused = places(FOCUSABLE).find(([, element]) => element === document.activeElement);
    const details = new Map(places("details").map(([name, element]) => [name, element.open]));
    const scrolled = all("*", main).map((element, at) => [at, element.scrollLeft, element.scrollTop])
      .filter(([, left, top]) => left || top);
    const log = one("pre.log", main);
    const isAtEnd = log !== null && log.scrollHeight - log.clientHeight - log.scrollTop < 4;
    const [x, y] = [scrollX, scrollY];
    main.replaceChildren(...document.adoptNode(one("main", fresh)).childNodes);
    document.title = fresh.title;
    for (const [name, element] of places("details")) if (details.has(name)) element.open = details.get(name);
    const elements = all("*", main);
    for (const [at, left, top] of scrolled) elements[at]?.scrollTo({ left, top, behavior: "instant" });
    if (isAtEnd) showEndOfLog();
    prepare();
    document.dispatchEvent(new Event("evenkeel:replaced"));
    const target = focused && places(FOCUSABLE).find(([name]) => name === focused[0]);
    target?.[1].focus({ preventScroll: true });
    scrollTo({ left: x, top: y, behavior: "instant" });
  };

  // The keyboard scrolls only elements that can have the focus.
  const prepare = () => {
    for (const element of all("table:not([data-grid]), pre", main)) {
      const { scrollWidth, scrollHeight, clientWidth, clientHeight } = element;
      if (scrollWidth > clientWidth || scrollHeight > clientHeight) element.tabIndex = 0;
    }
  };
  prepare();
  addEventListener("resize", prepare);

  const refresh = async () => {
    if (!isWatching() || isStatic()) return;
    if (loading) {
      again = true;
      return;
    }
    loading = true;
    try {
      const url = location.href;
      const answer = await fetch(url, { headers: { accept: "text/html" }, cache: "no-store" });
      const target = new URL(answer.url);
      if (target.pathname === "/sign-in" || answer.status === 401) {
        location.assign(target.pathname === "/sign-in" ? target.href : "/sign-in");
        return;
      }
      if (answer.status >= 500) throw new Error(answer.statusText);
      const text = await answer.text();
      isAway = false;
      if (url !== location.href || !isWatching()) return;
      waits = Boolean(isInUse());
      if (!waits) replaceContent(new DOMParser().parseFromString(text, "text/html"));
    } catch {
      isAway = true;
    } finally {
      loading = false;
      show();
    }
    if (again) {
      again = false;
      setTimeout(refresh, 1000);
    }
  };

  // No event tells about the lines of a log, and the end of an outage is no event either.
  setInterval(() => { if (one("[data-follow]", main)) refresh(); }, FOLLOW);
  setInterval(() => { if (isAway) refresh(); }, POLL);

  // --- The stream: one tab has it and tells the others ---
  const channel = "BroadcastChannel" in window ? new BroadcastChannel("evenkeel-live") : null;
  let isPaused = sessionStorage.getItem(PAUSED) !== null;
  let hasStream = true; // until the tab with the stream says otherwise
  let isAway = false;
  let waits = false;
  let release = null;
  const isWatching = () => bar !== null && !document.hidden && !isPaused;

  const show = () => {
    if (!bar) return;
    const [status, pause] = [one("[role=status]", bar), one("button", bar)];
    const [text, detail] = isPaused ? ["Paused", "Live updates are paused."]
      : isStatic() ? ["Not live", "This page does not update itself."]
      : isAway ? ["The server does not answer. Trying again every 5 s.", ""]
      : !hasStream ? ["Every 5 s", "There is no live stream. This page loads itself every 5 s."]
      : waits ? ["Update waits", "Updates wait while you edit or select."] : ["Live", ""];
    if (status.textContent !== text) status.textContent = text;
    bar.title = detail;
    bar.dataset.state = text === "Live" ? "live" : "wait";
    pause.hidden = text === "Not live";
    one("span", pause).textContent = isPaused ? "Resume" : "Pause";
  };
  const tell = (kind, value) => {
    channel?.postMessage({ kind, value });
    hear({ kind, value });
  };
  let settling = 0;
  const hear = ({ kind, value }) => {
    if (kind === "changed") {
      refresh();
      clearTimeout(settling);
      settling = setTimeout(refresh, SETTLE);
    }
    if (kind === "stream") hasStream = value;
    if (kind === "hello" && release) channel?.postMessage({ kind: "stream", value: hasStream });
    if (kind === "signed-out") location.assign("/sign-in");
    election?.hear(kind, value);
    show();
  };
  if (channel) channel.onmessage = (message) => hear(message.data);

  // Holds the stream until `signal`. Without a stream, it acts as if something changed every 5 s.
  const follow = (signal) => new Promise((done) => {
    let source;
    let heard = 0;
    let refused = 0;
    const open = () => {
      heard = Date.now();
      source = new EventSource("/ui/stream");
      source.onopen = () => tell("stream", true);
      source.onerror = () => {
        tell("stream", false);
        if (source.readyState === EventSource.CLOSED) refused = Date.now();
      };
      source.addEventListener("alive", () => { heard = Date.now(); });
      for (const kind of ["changed", "ended"]) {
        source.addEventListener(kind, () => { heard = Date.now(); tell("changed"); });
      }
    };
    open();
    const timer = setInterval(() => {
      const isSilent = source.readyState === EventSource.OPEN && Date.now() - heard > SILENCE;
      const mayRetry = source.readyState === EventSource.CLOSED && Date.now() - refused > RETRY;
      if (isSilent || mayRetry) {
        source.close();
        open();
      }
      if (source.readyState !== EventSource.OPEN) tell("changed");
    }, POLL);
    signal.addEventListener("abort", () => {
      clearInterval(timer);
      source.close();
      done();
    });
  });

  // Chooses the tab with the stream where browsers have no locks: plain HTTP on another host than this
  // one. The streams of all tabs would use up the connections that a browser opens to one host.
  let election = null;
  const elect = (signal) => {
    const own = Math.random();
    let term = null; // the time in which this tab has the stream
    let silentUntil = Date.now() + ELECTION;
    const say = () => channel?.postMessage({ kind: "leader", value: own });
    const beat = () => {
      if (!term && Date.now() >= silentUntil) follow((term = new AbortController()).signal);
      if (term) say();
    };
    const hear = (kind, value) => {
      if (kind === "hello" && term) say();
      if (kind === "left") silentUntil = Date.now() + own * BEAT;
      if (kind !== "leader") return;
      if (term && own < value) return say(); // the other tab gives up
      silentUntil = Date.now() + 3 * BEAT;
      term?.abort();
      term = null;
    };
    const timer = setInterval(beat, BEAT);
    const first = setTimeout(beat, ELECTION);
    const leave = () => { if (term) channel?.postMessage({ kind: "left" }); };
    addEventListener("pagehide", leave, { signal });
    election = { hear };
    signal.addEventListener("abort", () => {
      leave();
      clearInterval(timer);
      clearTimeout(first);
      term?.abort();
      election = null;
    });
  };

  // Hidden and paused tabs give the stream to another tab.
  const watch = () => {
    if (isWatching() === (release !== null)) return;
    if (release) {
      release.abort();
      release = null;
      return;
    }
    const control = release = new AbortController();
    const lead = () => (control.signal.aborted ? null : follow(control.signal));
    channel?.postMessage({ kind: "hello" });
    if (!navigator.locks) elect(control.signal);
    else navigator.locks.request("evenkeel-live", { signal: control.signal }, lead).catch(() => {});
  };

  if (bar) {
    bar.hidden = false;
    one("button", bar).onclick = () => {
      isPaused = !isPaused;
      if (isPaused) sessionStorage.setItem(PAUSED, "");
      else sessionStorage.removeItem(PAUSED);
      watch();
      refresh();
      show();
    };
    document.addEventListener("visibilitychange", () => {
      watch();
      refresh(); // a hidden page missed all changes
    });
    document.addEventListener("focusout", () => { if (waits) setTimeout(refresh, 300); });
    document.addEventListener("submit", (event) => {
      if (new URL(event.target.action).pathname !== "/ui/sign-out") return;
      sessionStorage.clear();
      localStorage.clear();
      channel?.postMessage({ kind: "signed-out" });
    });
    watch();
    show();
    if (one("pre.log[data-follow]", main)) showEndOfLog();
  }

  // --- Menus close like menus do elsewhere ---
  const closeMenus = (except) => {
    for (const menu of all("details.menu[open]")) if (menu !== except) menu.open = false;
  };
  document.addEventListener("click", (event) => closeMenus(event.target.closest("details.menu")));
  document.addEventListener("keydown", (event) => {
    const menu = one("details.menu[open]");
    if (event.key !== "Escape" || !menu) return;
    if (menu.contains(document.activeElement)) one("summary", menu).focus();
    closeMenus();
  });

  // --- The zone of the browser, as a choice for times ---
  const zones = one("select[data-zone]");
  const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zones && ownZone && !all("option", zones).some((option) => option.value === ownZone)) {
    zones.append(new Option(`${ownZone} (browser)`, ownZone));
  }
})();
