//! All routes, and the layers that wrap them. Each endpoint has one `routes!` line in this file.

use std::sync::Arc;

use axum::{Extension, Router, middleware};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::docs::DocsPage;
use crate::openapi::Document;
use crate::oversight::Guarded;
use crate::roles::Rules;
use crate::state::{App, AppParts, Settings};
use crate::{
    admin, api_keys, audit, auth, conditions, dead_letters, docs, events, executions, failures,
    guard, health, idempotency, jobs, memory, metrics, nodes, observe, oversight, pages, runs,
    scheduler, schedules, secrets, targets,
};

/// Builds the HTTP interface.
pub fn router(app: AppParts) -> Router {
    let app = App::new(app);
    let (public, closed, openapi) = parts(&app.settings);
    let page = DocsPage::new(&openapi);
    let document = Document(to_text(&openapi).into());
    let guarded = Guarded { app: app.clone(), rules: Arc::new(Rules::of(&openapi)) };
    let once = middleware::from_fn_with_state(app.clone(), idempotency::once);
    let role = middleware::from_fn_with_state(guarded.clone(), auth::require_role);
    let oversight = middleware::from_fn_with_state(guarded, oversight::oversee);
    let sign_in = middleware::from_fn(docs::sign_in);
    let hold = middleware::from_fn_with_state(app.clone(), memory::hold);
    // Layers are added from the innermost to the outermost, so the last one added sees a request
    // first. On routes that need a token, memory is reserved only for authenticated requests. The
    // memory of a request is held until the task that `oversight` starts for it has finished.
    let closed = closed.route_layer(once).route_layer(hold.clone()).route_layer(role);
    let router = Router::new()
        .merge(closed.route_layer(oversight.clone()).route_layer(sign_in))
        .merge(public.route_layer(hold).route_layer(oversight))
        .fallback(guard::no_such_path)
        .method_not_allowed_fallback(guard::no_such_method)
        .layer(Extension(document))
        .layer(Extension(page))
        .layer(middleware::from_fn_with_state(app.clone(), guard::in_time))
        .layer(CatchPanicLayer::custom(guard::panicked))
        .layer(middleware::from_fn_with_state(app.clone(), observe::observe))
        .layer(middleware::from_fn_with_state(app.clone(), oversight::name_request))
        .with_state(app);
    guard::with_safe_headers(router)
}

pub fn openapi() -> OpenApi {
    parts(&Settings::default()).2
}

/// Returns the public routes, the routes that require a token, and the OpenAPI document of all
/// routes.
fn parts(settings: &Settings) -> (Router<App>, Router<App>, OpenApi) {
    let mut public = OpenApiRouter::new()
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        // Callback routes are public, because their handlers check the token of the attempt.
        .routes(routes!(runs::complete))
        .routes(routes!(runs::fail))
        .routes(routes!(runs::heartbeat))
        .routes(routes!(runs::progress));
    let mut closed = OpenApiRouter::with_openapi(crate::openapi::frame())
        .routes(routes!(jobs::list, jobs::create))
        .routes(routes!(jobs::get, jobs::put, jobs::patch, jobs::delete))
        .routes(routes!(jobs::bulk))
        .routes(routes!(jobs::commands))
        .routes(routes!(jobs::trigger))
        .routes(routes!(jobs::pause))
        .routes(routes!(jobs::resume))
        .routes(routes!(jobs::cancel))
        .routes(routes!(jobs::retry))
        .routes(routes!(jobs::next))
        .routes(routes!(jobs::condition))
        .routes(routes!(jobs::explain))
        .routes(routes!(jobs::stats))
        .routes(routes!(scheduler::metrics))
        .routes(routes!(scheduler::distribution))
        .routes(routes!(scheduler::history))
        .routes(routes!(scheduler::preview_rebalance))
        .routes(routes!(scheduler::rebalance))
        .routes(routes!(scheduler::list_rebalances))
        .routes(routes!(scheduler::get_rebalance))
        .routes(routes!(scheduler::list_rebalance_moves))
        .routes(routes!(scheduler::stop_rebalance))
        .routes(routes!(scheduler::undo_rebalance))
        .routes(routes!(failures::list))
        .routes(routes!(conditions::list))
        .routes(routes!(nodes::list))
        .routes(routes!(schedules::preview))
        .routes(routes!(executions::list_of_job))
        .routes(routes!(executions::list))
        .routes(routes!(executions::get))
        .routes(routes!(executions::cancel))
        .routes(routes!(executions::logs))
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::get, dead_letters::delete))
        .routes(routes!(dead_letters::redrive))
        .routes(routes!(dead_letters::redrive_many))
        .routes(routes!(dead_letters::delete_many))
        .routes(routes!(events::stream))
        .routes(routes!(pages::list))
        .routes(routes!(pages::get))
        .routes(routes!(targets::list, targets::create))
        .routes(routes!(targets::get, targets::put, targets::patch, targets::delete))
        .routes(routes!(admin::list))
        .routes(routes!(admin::stats))
        .routes(routes!(admin::set_status))
        .routes(routes!(admin::set_priority))
        .routes(routes!(admin::boost))
        .routes(routes!(admin::retry))
        .routes(routes!(admin::set_status_of_many))
        .routes(routes!(admin::retry_many))
        .routes(routes!(admin::list_scheduled, admin::create_scheduled))
        .routes(routes!(admin::get_scheduled, admin::update_scheduled, admin::delete_scheduled))
        .routes(routes!(admin::toggle_scheduled))
        .routes(routes!(api_keys::list, api_keys::create))
        .routes(routes!(api_keys::revoke))
        .routes(routes!(secrets::list))
        .routes(routes!(secrets::get, secrets::put, secrets::delete))
        .routes(routes!(secrets::rotate))
        .routes(routes!(audit::list));
    for (is_open, route) in [
        (settings.open_metrics, routes!(metrics::metrics)),
        (settings.open_openapi, routes!(crate::openapi::document)),
        (settings.open_openapi, routes!(docs::docs)),
    ] {
        if is_open {
            public = public.routes(route);
        } else {
            closed = closed.routes(route);
        }
    }
    let (public, public_document) = public.split_for_parts();
    let (closed, mut document) = closed.split_for_parts();
    document.merge(public_document);
    crate::openapi::complete(&mut document);
    (public, closed, document)
}

fn to_text(openapi: &OpenApi) -> String {
    // Serializing plain maps and strings cannot fail.
    openapi.to_json().unwrap_or_default()
}
