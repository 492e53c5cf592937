//! The dashboard: pages for people, rendered on the server.
//!
//! - `backend`: pages get all their data from the API, by calling its router in this process with the
//!   credential of the session. So pages show nothing that the API would not show to the same user,
//!   and every action passes the same checks, limits and audit log.
//! - `session`: the cookie of a session holds the credential, encrypted with a key of the
//!   installation. Every node of a cluster can read it, and nothing is kept on the server.
//! - `oidc`: signs users in at an identity provider.
//! - `guard`: host names, origins and security headers. The API itself never accepts the cookie.
//! - `live`: tells open pages that something changed, so that they load themselves again.
//! - `layout`, `text` and `zone`: the frame of a page, times and durations, the time zone.
//! - `pages`: one file per page. `*_actions`: forms that change something.

mod backend;
mod bulk_actions;
mod chart;
mod cookies;
mod dead_letter_actions;
mod guard;
mod job_actions;
mod layout;
mod live;
mod oidc;
mod one_time_link;
mod pages;
mod rebalance_actions;
mod sealed;
mod session;
mod shared_answers;
mod text;
mod zone;

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use evenkeel_access::Access;
use evenkeel_core::Timestamp;
use evenkeel_core::chance::Chance;

use backend::Backend;
pub use guard::Hosts;
use live::Live;
use oidc::Oidc;
pub use oidc::OidcSettings;
pub use one_time_link::OneTimeLinks;
use session::Sessions;

const SCRIPT: &str = include_str!("../assets/app.js");
const KEYBOARD: &str = include_str!("../assets/keyboard.js");
const STYLE: &str = include_str!("../assets/style.css");
const ICON: &str = include_str!("../assets/icon.svg");
const SCRIPT_TYPE: &str = "text/javascript; charset=utf-8";

/// The parts from which the dashboard is built.
pub struct WebParts {
    /// The router of the API, which also answers every path that the dashboard does not have.
    pub api: Router,
    pub access: Arc<Access>,
    /// A secret of the installation, from which the keys of session cookies are derived. All nodes of
    /// a cluster have the same secret.
    pub secret: String,
    /// True if browsers reach the server over TLS.
    pub is_tls: bool,
    pub hosts: Hosts,
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    pub chance: Arc<dyn Chance>,
    pub links: OneTimeLinks,
    pub oidc: Option<OidcSettings>,
}

/// State shared by all handlers.
#[derive(Clone)]
pub(crate) struct Web(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) backend: Backend,
    pub(crate) access: Arc<Access>,
    pub(crate) sessions: Sessions,
    pub(crate) live: Live,
    pub(crate) links: OneTimeLinks,
    pub(crate) oidc: Option<Oidc>,
    pub(crate) hosts: Hosts,
    pub(crate) is_tls: bool,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Web {
    pub(crate) fn now(&self) -> Timestamp {
        (self.0.clock)()
    }
}

impl std::ops::Deref for Web {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// Builds the router of the dashboard and the API.
pub fn router(parts: WebParts) -> Router {
    let WebParts { api, access, secret, is_tls, hosts, clock, chance, links, oidc } = parts;
    let web = Web(Arc::new(Shared {
        backend: Backend::new(api.clone()),
        access,
        sessions: Sessions::new(secret.as_bytes(), Arc::clone(&chance)),
        live: Live::default(),
        links,
        oidc: oidc.map(|settings| Oidc::new(settings, chance)),
        hosts,
        is_tls,
        clock,
    }));
    let pages = Router::new()
        .route("/", get(pages::overview::show))
        .route("/jobs", get(pages::jobs::show))
        .route("/jobs/new", get(pages::job_form::create))
        .route("/jobs/{id}", get(pages::job::show))
        .route("/jobs/{id}/edit", get(pages::job_form::edit))
        .route("/jobs/{id}/confirm/{action}", get(pages::job::confirm))
        .route("/ui/jobs/preview", post(pages::job_form::preview))
        .route("/ui/jobs/save", post(pages::job_form::save))
        .route("/runs/{id}", get(pages::run::show))
        .route("/ui/runs/{id}/cancel", post(job_actions::cancel_run))
        .route("/balance", get(pages::balance::show))
        .route("/at-risk", get(pages::at_risk::show))
        .route("/failures", get(pages::failures::show))
        .route("/nodes", get(pages::nodes::show))
        .route("/ui/jobs/{id}/{action}", post(job_actions::act_on_job))
        .route("/ui/views/save", post(pages::saved_views::save))
        .route("/ui/views/remove", post(pages::saved_views::remove))
        .route("/job-commands", get(bulk_actions::confirm))
        .route("/ui/job-commands", post(bulk_actions::apply))
        .route("/pages", get(pages::crawled::list))
        .route("/pages/{id}", get(pages::crawled::show))
        .route("/targets", get(pages::targets::show))
        .route("/audit", get(pages::audit::show))
        .route("/access", get(pages::access::show))
        .route("/access/revoke/{id}", get(pages::access::confirm_revoke))
        .route("/ui/api-keys", post(pages::access::create))
        .route("/ui/api-keys/{id}/revoke", post(pages::access::revoke))
        .route("/runs", get(pages::runs::show))
        .route("/timeline", get(pages::timeline::show))
        .route("/queue", get(pages::queue::show))
        .route("/pauses", get(pages::pauses::show))
        .route("/dead-letters", get(pages::dead_letters::show))
        .route("/dead-letters/confirm", get(pages::dead_letters::confirm))
        .route("/ui/dead-letters/{action}", post(dead_letter_actions::act_on_letters))
        .route("/ui/dead-letters/{id}/{action}", post(dead_letter_actions::act_on_letter))
        .route("/ui/rebalance", post(rebalance_actions::rebalance))
        .route("/ui/rebalance/{id}/{action}", post(rebalance_actions::act_on_rebalance))
        .route("/docs/api", get(pages::api::show))
        .route("/docs/api/openapi.json", get(pages::api::document))
        .route("/docs/api/all", get(pages::api::all))
        .route("/docs/api/try", get(pages::api::try_it))
        .route("/ui/try", post(pages::api::send))
        .route("/ui/zone", get(zone::remember))
        .route("/ui/stream", get(live::stream))
        .route("/ui/sign-out", post(session::sign_out))
        .route_layer(middleware::from_fn_with_state(web.clone(), session::require));
    let open = Router::new()
        .route("/api/docs", get(pages::api::without_session))
        .route("/sign-in", get(pages::sign_in::show).post(session::sign_in))
        .route(one_time_link::PATH, get(one_time_link::sign_in))
        .route(oidc::BEGIN, get(oidc::begin))
        .route(oidc::CALLBACK, get(oidc::finish))
        .route("/assets/app.js", get(async || file(SCRIPT_TYPE, SCRIPT)))
        .route("/assets/keyboard.js", get(async || file(SCRIPT_TYPE, KEYBOARD)))
        .route("/assets/icon.svg", get(async || file("image/svg+xml", ICON)))
        .route("/assets/style.css", get(async || file("text/css; charset=utf-8", STYLE)));
    let pages = pages
        .merge(open)
        .layer(middleware::from_fn(zone::choose))
        .layer(middleware::from_fn_with_state(web.clone(), guard::check_request))
        .with_state(web);
    evenkeel_api::with_safe_headers(pages).fallback_service(api)
}

fn file(content_type: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))], text).into_response()
}
