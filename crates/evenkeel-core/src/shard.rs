//! Divides jobs among the scheduler nodes of a cluster.

use crate::hash::mix;
use crate::ids::{JobNo, NodeNo};

/// One of 256 groups into which all jobs are divided. A job always stays in the same shard.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Shard(pub u8);

impl Shard {
    pub const COUNT: u16 = 256;

    pub const fn of(job: JobNo) -> Self {
        Self((job.0 & 0xff) as u8)
    }

    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }
}

/// Returns the shards that the node `me` schedules, if `nodes` is the list of all scheduler nodes.
///
/// With rendezvous hashing, all nodes compute the same owners of shards from the same list of
/// nodes. When a node joins or leaves, no shard moves between the other nodes.
pub fn shards_of(me: NodeNo, nodes: &[NodeNo]) -> Vec<Shard> {
    Shard::all().filter(|shard| owner_of(*shard, nodes) == Some(me)).collect()
}

/// Returns the node that schedules a shard, if `nodes` is the list of all scheduler nodes.
pub fn owner_of(shard: Shard, nodes: &[NodeNo]) -> Option<NodeNo> {
    nodes.iter().copied().max_by_key(|node| weight(*node, shard))
}

fn weight(node: NodeNo, shard: Shard) -> (u64, NodeNo) {
    let both = (node.0 as u64) << 8 | u64::from(shard.0);
    (mix(both.wrapping_add(0x9e37_79b9_7f4a_7c15)), node)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nodes(numbers: &[i32]) -> Vec<NodeNo> {
        numbers.iter().copied().map(NodeNo).collect()
    }

    #[test]
    fn three_nodes_share_roughly_evenly() {
        let all = nodes(&[1, 2, 3]);
        for node in &all {
            let share = shards_of(*node, &all).len();
            assert!((55..=120).contains(&share), "{node} has {share}");
        }
    }

    proptest! {
        #[test]
        fn every_shard_has_one_owner(numbers in prop::collection::btree_set(1_i32..10_000, 1..12)) {
            let all = nodes(&numbers.into_iter().collect::<Vec<_>>());
            let mut owned: Vec<Shard> = all.iter().flat_map(|node| shards_of(*node, &all)).collect();
            owned.sort();
            prop_assert_eq!(owned, Shard::all().collect::<Vec<_>>());
        }

        #[test]
        fn new_node_moves_shards_only_to_itself(numbers in prop::collection::btree_set(1_i32..10_000, 2..12)) {
            let all = nodes(&numbers.into_iter().collect::<Vec<_>>());
            let before = &all[1..];
            for node in before {
                let kept = shards_of(*node, &all);
                let had = shards_of(*node, before);
                prop_assert!(kept.iter().all(|shard| had.contains(shard)));
            }
        }
    }
}
