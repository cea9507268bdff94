//! User mappers that own what belongs to the run.

use std::sync::Arc;

use celerity_executor::{NodeFrontend, SubmitError};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, DeclareError, Mapper, MapperInput, UserMapper};

use crate::common::{ProgramError, buffer, cluster, host_task, reads, run};

/// What a facade's buffer handle does: dropping it drops the buffer.
struct Handle {
    node: Arc<NodeFrontend>,
    buffer: BufferId,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.node.drop_buffer(self.buffer);
    }
}

#[test]
fn a_refused_task_may_own_the_last_handle_of_a_buffer() {
    let extent = Box3::from_range([8]);
    let outcome = run(&cluster(2, 1), move |node| {
        let unwritten = buffer(node, extent);
        let owned = Handle { node: node.clone(), buffer: buffer(node, extent) };
        let mapper = UserMapper::new(move |_: &MapperInput| {
            let whole: &Handle = &owned; // not just its field
            assert_ne!(whole.buffer, unwritten);
            extent.into()
        });
        let accesses = vec![reads(unwritten, Mapper::User(mapper))];
        match host_task(node, "refused", accesses, |_| {}) {
            Err(SubmitError::Declare(DeclareError::UninitializedRead { .. })) => Ok(()),
            other => Err(ProgramError::Own(format!("{other:?}"))),
        }
    });
    assert_eq!(outcome, Ok(()));
}
