//! All routes, and the layers that wrap them. Each endpoint has one `routes!` line in this file.

use std::sync::Arc;

use axum::{Extension, Router, middleware};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::openapi::Document;
use crate::oversight::Guarded;
use crate::roles::Rules;
use crate::state::{App, AppParts, Settings};
use crate::{
    admin, api_keys, audit, auth, conditions, dead_letters, events, executions, failures, guard,
    health, idempotency, jobs, memory, metrics, nodes, observe, oversight, pages, runs, scheduler,
    schedules, secrets, targets, timeline,
};

/// Builds the HTTP interface.
pub fn router(app: AppParts) -> Router {
    let app = App::new(app);
    let (public, closed, openapi) = parts(&app.settings);
    // Serializing plain maps and strings cannot fail.
    let document = Document(openapi.to_json().unwrap_or_default().into());
    let guarded = Guarded { app: app.clone(), rules: Arc::new(Rules::of(&openapi)) };
    let once = middleware::from_fn_with_state(app.clone(), idempotency::once);
    let role = middleware::from_fn_with_state(guarded.clone(), auth::require_role);
    let oversight = middleware::from_fn_with_state(guarded, oversight::oversee);
    let hold = middleware::from_fn_with_state(app.clone(), memory::hold);
    // Layers are added from the innermost to the outermost, so the last one added sees a request
    // first. On routes that need a token, memory is reserved only for authenticated requests. The
    // memory of a request is held until the task that `oversight` starts for it has finished.
    let closed = closed.route_layer(once).route_layer(hold.clone()).route_layer(role);
    let router = Router::new()
        .merge(closed.route_layer(oversight.clone()))
        .merge(public.route_layer(hold).route_layer(oversight))
        .fallback(guard::no_such_path)
        .method_not_allowed_fallback(guard::no_such_method)
        .layer(Extension(document))
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
        .routes(routes!(runs::complete::complete_run))
        .routes(routes!(runs::fail::fail_run))
        .routes(routes!(runs::heartbeat::heartbeat_run))
        .routes(routes!(runs::progress::progress_run));
    let mut closed = OpenApiRouter::with_openapi(crate::openapi::frame())
        .routes(routes!(jobs::list::list_jobs, jobs::create::create_job))
        .routes(routes!(jobs::get::get_job))
        .routes(routes!(jobs::update::update_job))
        .routes(routes!(jobs::update::patch_job))
        .routes(routes!(jobs::delete::delete_job))
        .routes(routes!(jobs::bulk::create_jobs))
        .routes(routes!(jobs::commands::command_jobs))
        .routes(routes!(jobs::trigger::trigger_job))
        .routes(routes!(jobs::control::pause_job))
        .routes(routes!(jobs::control::resume_job))
        .routes(routes!(jobs::control::cancel_job))
        .routes(routes!(jobs::control::retry_job))
        .routes(routes!(jobs::next::next_times_of_job))
        .routes(routes!(jobs::condition::condition_of_job))
        .routes(routes!(jobs::explain::explain_job))
        .routes(routes!(jobs::stats::get_job_stats))
        .routes(routes!(scheduler::metrics::get_scheduler_metrics))
        .routes(routes!(scheduler::activity::get_activity))
        .routes(routes!(scheduler::distribution::get_distribution))
        .routes(routes!(scheduler::history::list_distribution_history))
        .routes(routes!(scheduler::rebalance::preview::preview_rebalance))
        .routes(routes!(scheduler::rebalance::act::rebalance))
        .routes(routes!(scheduler::rebalance::list::list_rebalances))
        .routes(routes!(scheduler::rebalance::get::get_rebalance))
        .routes(routes!(scheduler::rebalance::moves::list_rebalance_moves))
        .routes(routes!(scheduler::rebalance::stop::stop_rebalance))
        .routes(routes!(scheduler::rebalance::undo::undo_rebalance))
        .routes(routes!(failures::list_failures))
        .routes(routes!(conditions::list_conditions))
        .routes(routes!(nodes::list_nodes))
        .routes(routes!(schedules::preview_schedule))
        .routes(routes!(executions::list::list_job_executions))
        .routes(routes!(executions::list::list_executions))
        .routes(routes!(executions::get::get_execution))
        .routes(routes!(executions::cancel::cancel_execution))
        .routes(routes!(executions::logs::get_execution_logs))
        .routes(routes!(runs::list::list_runs))
        .routes(routes!(runs::get::get_run))
        .routes(routes!(timeline::get_timeline))
        .routes(routes!(dead_letters::list::list_dead_letters))
        .routes(routes!(dead_letters::get::get_dead_letter))
        .routes(routes!(dead_letters::delete::delete_dead_letter))
        .routes(routes!(dead_letters::redrive::redrive_dead_letter))
        .routes(routes!(dead_letters::many::redrive_dead_letters))
        .routes(routes!(dead_letters::many::delete_dead_letters))
        .routes(routes!(events::stream::stream_events))
        .routes(routes!(pages::list::list_pages))
        .routes(routes!(pages::get::get_page))
        .routes(routes!(targets::list::list_targets, targets::create::create_target))
        .routes(routes!(targets::get::get_target))
        .routes(routes!(targets::update::update_target))
        .routes(routes!(targets::update::patch_target))
        .routes(routes!(targets::delete::delete_target))
        .routes(routes!(admin::jobs::admin_list_jobs))
        .routes(routes!(admin::jobs::admin_job_stats))
        .routes(routes!(admin::status::admin_set_job_status))
        .routes(routes!(admin::priority::admin_set_job_priority))
        .routes(routes!(admin::priority::admin_boost_job))
        .routes(routes!(admin::status::admin_retry_job))
        .routes(routes!(admin::bulk::admin_set_status_of_jobs))
        .routes(routes!(admin::bulk::admin_retry_jobs))
        .routes(routes!(admin::scheduled::admin_list_scheduled_jobs))
        .routes(routes!(admin::scheduled_change::admin_create_scheduled_job))
        .routes(routes!(admin::scheduled::admin_get_scheduled_job))
        .routes(routes!(admin::scheduled_change::admin_update_scheduled_job))
        .routes(routes!(admin::scheduled_change::admin_delete_scheduled_job))
        .routes(routes!(admin::scheduled_change::admin_toggle_scheduled_job))
        .routes(routes!(api_keys::list::list_api_keys, api_keys::create::create_api_key))
        .routes(routes!(api_keys::revoke::revoke_api_key))
        .routes(routes!(secrets::list::list_secrets))
        .routes(routes!(secrets::get::get_secret))
        .routes(routes!(secrets::put::put_secret))
        .routes(routes!(secrets::delete::delete_secret))
        .routes(routes!(secrets::rotate::rotate_secrets))
        .routes(routes!(audit::list_audit));
    for (is_open, route) in [
        (settings.open_metrics, routes!(metrics::get_metrics)),
        (settings.open_openapi, routes!(crate::openapi::get_openapi)),
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
