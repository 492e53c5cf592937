//! The documents that ask for a rebalance.

use evenkeel_core::balance::Wanted;
use evenkeel_store::JobFilter;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::Fault;
use crate::fault::{Faults, shown};
use crate::read::{Fields, read_filter_document};

/// More moves than this in one rebalance nobody has jobs for.
const MOVES_ASKED_MAX: u64 = 1_000_000_000;

/// What a rebalance is to do.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PlanOptions {
    /// Only jobs that pass this may move; all may if there is none.
    pub filter: Option<JobFilter>,
    /// The same, as it was written.
    pub filter_document: Option<Value>,
    /// What it is to reach.
    pub wanted: Wanted,
}

/// What is acted on.
#[derive(Clone, PartialEq, Debug)]
pub enum Subject {
    /// A plan that was shown.
    Plan(Uuid),
    /// A plan that is made for it.
    Fresh(Box<PlanOptions>),
}

/// A rebalance that is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct RebalanceOrder {
    /// Which.
    pub subject: Subject,
    /// The answer is to wait for its end.
    pub wait: bool,
}

/// Reads what a preview is asked for; nothing means everything.
pub fn read_plan_options(document: Option<&Value>) -> Result<PlanOptions, Vec<Fault>> {
    let none = Map::new();
    let mut fields = Fields::new(object(document, &none)?, "", Faults::default());
    let options = options(&mut fields);
    fields.finish(|_| None).or(Some(options))
}

/// Reads what a rebalance is asked for; nothing means everything.
pub fn read_rebalance(document: Option<&Value>) -> Result<RebalanceOrder, Vec<Fault>> {
    let none = Map::new();
    let mut fields = Fields::new(object(document, &none)?, "", Faults::default());
    let wait = fields.flag("wait").unwrap_or(true);
    let plan = fields.text("plan_id").map(str::parse::<Uuid>);
    let has_plan = fields.value("plan_id").is_some();
    if matches!(plan, Some(Err(_))) {
        fields.fault("plan_id", "is not the id of a plan; a preview answers with one");
    }
    for name in ["filter", "max_moves", "target_score"] {
        if has_plan && fields.value(name).is_some() {
            fields.fault(name, "goes with no plan_id: the plan says what is done; leave one out");
        }
    }
    let options = options(&mut fields);
    let subject = match plan {
        Some(plan) => plan.ok().map(Subject::Plan),
        None => Some(Subject::Fresh(Box::new(options))),
    };
    fields.finish(|_| None).or(subject.map(|subject| RebalanceOrder { subject, wait }))
}

/// Reads whether an undo is waited for.
pub fn read_undo(document: Option<&Value>) -> Result<bool, Vec<Fault>> {
    let none = Map::new();
    let mut fields = Fields::new(object(document, &none)?, "", Faults::default());
    let wait = fields.flag("wait").unwrap_or(true);
    fields.finish(|_| None).or(Some(wait))
}

fn object<'a>(
    document: Option<&'a Value>,
    none: &'a Map<String, Value>,
) -> Result<&'a Map<String, Value>, Vec<Fault>> {
    match document {
        None | Some(Value::Null) => Ok(none),
        Some(Value::Object(object)) => Ok(object),
        Some(other) => {
            let message = format!("send an object, or nothing at all, not {}", shown(other));
            Err(vec![Fault::new("", message)])
        }
    }
}

fn options(fields: &mut Fields<'_>) -> PlanOptions {
    let max_moves = fields.number("max_moves", 1..=MOVES_ASKED_MAX);
    let target_score = fields.fraction("target_score");
    let document = fields.value("filter");
    let filter = document.and_then(|filter| read_filter_document(fields, filter));
    PlanOptions {
        filter,
        filter_document: document.cloned(),
        wanted: Wanted { max_moves, target_score },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_means_everything() {
        for document in [None, Some(json!(null)), Some(json!({}))] {
            let order = read_rebalance(document.as_ref()).unwrap();
            assert_eq!(order.subject, Subject::Fresh(Box::default()));
            assert!(order.wait);
            assert_eq!(read_plan_options(document.as_ref()).unwrap(), PlanOptions::default());
        }
    }

    #[test]
    fn every_option_is_read() {
        let document =
            json!({"filter": {"name_prefix": "news"}, "max_moves": 9, "target_score": 0.9});
        let options = read_plan_options(Some(&document)).unwrap();
        assert_eq!(options.filter.unwrap().name_prefix.unwrap(), "news");
        assert_eq!(options.filter_document, Some(json!({"name_prefix": "news"})));
        assert_eq!(options.wanted, Wanted { max_moves: Some(9), target_score: Some(0.9) });
        let id = "0190163d-8694-739b-aea5-966c26f8ad91";
        let order = read_rebalance(Some(&json!({"plan_id": id, "wait": false}))).unwrap();
        assert_eq!(
            order,
            RebalanceOrder { subject: Subject::Plan(id.parse().unwrap()), wait: false }
        );
    }

    #[test]
    fn what_is_wrong_is_refused_by_name() {
        let id = "0190163d-8694-739b-aea5-966c26f8ad91";
        for (document, field) in [
            (json!([]), ""),
            (json!({"max_moves": 0}), "max_moves"),
            (json!({"target_score": 1.5}), "target_score"),
            (json!({"target_score": "high"}), "target_score"),
            (json!({"filter": {"status": "dead"}}), "filter.status"),
            (json!({"filter": 7}), "filter"),
            (json!({"plan_id": "x"}), "plan_id"),
            (json!({"plan_id": id, "max_moves": 3}), "max_moves"),
            (json!({"wait": "no"}), "wait"),
            (json!({"max_move": 3}), "max_move"),
        ] {
            let faults = read_rebalance(Some(&document)).unwrap_err();
            assert_eq!(faults[0].field, field, "{document}");
        }
        assert!(read_plan_options(Some(&json!({"plan_id": id}))).is_err());
    }
}
