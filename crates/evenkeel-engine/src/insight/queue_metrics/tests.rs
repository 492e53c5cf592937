//! Metrics for example queues.

use evenkeel_core::{NodeNo, Span};
use evenkeel_store::{QueueDepth, Roles};

use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fn member(node: i32, pools: &[&str]) -> Member {
    Member {
        node: NodeNo(node),
        name: format!("node-{node}"),
        roles: Roles::ALL,
        pools: pools.iter().map(|pool| (*pool).to_owned()).collect(),
        state: NodeState::Live,
        joined_at: NOW,
        last_ping_at: NOW,
        steal_start_at: None,
    }
}

/// Returns the queue depth for `waiting` queued attempts of one priority, the oldest of which has
/// waited for `secs` seconds.
fn depth(pool: &str, lane: Lane, priority: u8, waiting: u64, secs: u64) -> QueueDepth {
    let mut depth = QueueDepth::none(pool.into(), lane);
    depth.add(priority, waiting, NOW.saturating_sub(Span::from_secs(secs)));
    depth
}

fn queue(depths: Vec<QueueDepth>) -> QueueDepths {
    QueueDepths { depths, ..QueueDepths::default() }
}

/// Returns the label values and numbers of all metrics named `name`.
fn named(figures: &BTreeMap<Figure, f64>, name: &str) -> Vec<(String, f64)> {
    let of = figures.iter().filter(|((of, _), _)| *of == name);
    let values = |labels: &[(&str, String)]| {
        labels.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" ")
    };
    of.map(|((_, labels), value)| (values(labels), *value)).collect()
}

fn shown(figures: &[(&str, f64)]) -> Vec<(String, f64)> {
    figures.iter().map(|(labels, value)| ((*labels).to_owned(), *value)).collect()
}

#[test]
fn queue_depth_is_exported_by_pool_and_lane() {
    let queue = queue(vec![
        depth("default", Lane::Critical, 100, 2, 30),
        depth("default", Lane::Batch, 5, 7, 90),
        depth("gpu", Lane::Batch, 9, 3, 5),
    ]);
    let members = [member(1, &["default"]), member(2, &["default", "chrome"])];
    let figures = ClusterFigures::default().figures(&queue, &members, NOW);
    assert_eq!(
        named(&figures, DEPTH),
        shown(&[
            ("chrome batch", 0.0),
            ("chrome critical", 0.0),
            ("chrome standard", 0.0),
            ("default batch", 7.0),
            ("default critical", 2.0),
            ("default standard", 0.0),
            ("gpu batch", 3.0),
        ])
    );
    let oldest = named(&figures, OLDEST);
    assert!(oldest.contains(&("default batch".into(), 90.0)));
    assert!(oldest.contains(&("default standard".into(), 0.0)));
    let workers = shown(&[("chrome", 1.0), ("default", 2.0), ("gpu", 0.0)]);
    assert_eq!(named(&figures, POOL_WORKERS), workers);
    let unserved = shown(&[("chrome", 0.0), ("default", 0.0), ("gpu", 3.0)]);
    assert_eq!(named(&figures, UNSERVED), unserved);
    let priorities = named(&figures, PRIORITY);
    assert_eq!(priorities.len(), 11);
    assert!(priorities.contains(&("0-9".into(), 10.0)));
    assert!(priorities.contains(&("90-99".into(), 0.0)));
    assert!(priorities.contains(&("100".into(), 2.0)));
    assert_eq!(named(&figures, LOWER_BOUND), shown(&[("", 0.0)]));
}

#[test]
fn only_live_workers_serve_a_pool() {
    let queue = queue(vec![depth("default", Lane::Standard, 0, 4, 1)]);
    let all = member(1, &["default"]);
    assert!(unserved_pools(&queue, std::slice::from_ref(&all)).is_empty());
    for away in [
        Member { state: NodeState::Draining, ..all.clone() },
        Member { state: NodeState::Dead, ..all.clone() },
        Member { roles: Roles { worker: false, ..Roles::ALL }, ..all.clone() },
        Member { pools: vec!["other".into()], ..all },
    ] {
        let unserved = unserved_pools(&queue, std::slice::from_ref(&away));
        assert_eq!(unserved, BTreeMap::from([("default".to_owned(), 4)]), "{away:?}");
    }
}

#[test]
fn pools_beyond_a_hundred_share_a_label() {
    let pools = (0..130).map(|n| depth(&format!("pool-{n:03}"), Lane::Standard, 0, 1, n));
    let mut cluster = ClusterFigures::default();
    let figures = cluster.figures(&queue(pools.collect()), &[], NOW);
    let depths = named(&figures, DEPTH);
    assert_eq!(depths.len(), POOLS_MAX + 1);
    assert_eq!(depths[0], ("(others) standard".into(), 30.0));
    assert_eq!(named(&figures, OLDEST)[0].1, 129.0);
    assert_eq!(named(&figures, UNSERVED).iter().map(|(_, waiting)| waiting).sum::<f64>(), 130.0);
}

#[test]
fn uncounted_pools_are_exported_as_others() {
    let queue = QueueDepths {
        depths: vec![depth("default", Lane::Batch, 5, 7, 90)],
        others: vec![depth("", Lane::Batch, 5, 40, 300)],
        ..QueueDepths::default()
    };
    let figures = ClusterFigures::default().figures(&queue, &[], NOW);
    assert_eq!(named(&figures, DEPTH), shown(&[("(others) batch", 40.0), ("default batch", 7.0)]));
    assert!(named(&figures, OLDEST).contains(&("(others) batch".into(), 300.0)));
    assert!(named(&figures, PRIORITY).contains(&("0-9".into(), 47.0)));
    // Pools under the shared metric label `(others)` are not reported as unserved, because it is
    // not known whether workers serve them.
    assert_eq!(named(&figures, UNSERVED), shown(&[("default", 7.0)]));
}
