//! The rule of collective groups: in each of the three graphs, each member of a group waits for
//! the one before it. So nodes run the tasks of a group one after another, all in the same order.

use celerity_tdag::CollectiveGroup;

use crate::violation::{Check, Violation};
use crate::window::RecentNodes;

/// The newest member of each group, by number, in one graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups(Vec<(u16, u64)>);

impl Groups {
    /// Checks the node `me`, which has just entered `window`, if it is in a group.
    pub(crate) fn check<L>(
        &mut self,
        window: &RecentNodes<L>,
        group: Option<CollectiveGroup>,
        me: u64,
    ) -> Check {
        let Some(group) = group else { return Ok(()) };
        let known = self.0.iter_mut().find(|(number, _)| *number == group.number());
        let Some((_, newest)) = known else {
            self.0.push((group.number(), me));
            return Ok(());
        };
        let earlier = std::mem::replace(newest, me);
        match window.order() {
            Some(order) if !order.waits_for(me, earlier) => {
                let [later, earlier] = [me, earlier].map(|index| window.vertex(index));
                Err(Violation::GroupUnordered { later, earlier, group }.into())
            }
            _ => Ok(()),
        }
    }
}
