//! What a kernel's entry point takes, as plain data: the host's side of the
//! signature, and the types that may stand in it.

use core::fmt;

use super::blocks::{AccessBlock, LaunchBlock};
use super::local::{ALIGNMENT, LocalParameter, local_offset};
use super::place::{Edges, Traversal};
use super::tiles::{LANES, TileBlock};
use super::{RUN, STACK};
use crate::plain::Scalar;

/// Bytes of each block's shared memory that a module keeps for itself.
const MODULE_SHARED_BYTES: usize = 80;

/// What a launch takes on every device that kernels are compiled for, by drivers of CUDA 12.1 and later; older ones take 4,096.
const MOST_PARAMETER_BYTES: usize = 32_764;

/// A kernel as a host knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The function's name in the user's source.
    pub name: &'static str,
    /// The entry point's name in the compiled module.
    pub entry: &'static str,
    /// The name of the one for [narrow rows](EntryKind::Narrow), if it has one.
    pub narrow_entry: Option<&'static str>,
    /// The name of the one for [stacks](EntryKind::Stacked), if it has one.
    pub stacked_entry: Option<&'static str>,
    /// The name of the one for lists of buffers that are [not alike](EntryKind::Apart), if it has lists.
    pub apart_entry: Option<&'static str>,
    /// Whether threads take several items, or runs, along the slowest dimension, as [`takes_steps`] says.
    pub takes_steps: bool,
    /// What it is called with.
    pub form: Form,
    /// Dimensions of its index space.
    pub dims: usize,
    /// One for each access, in order.
    pub views: &'static [ViewParameter],
    /// Of each view, which is the first of its list, or it is itself. None, if there are no lists.
    pub firsts: &'static [usize],
    /// What else it takes, by value, in order.
    pub scalars: &'static [ScalarParameter],
    /// The arrays of local memory that it takes, in order. The lengths of slices are among `scalars`.
    pub local: &'static [LocalParameter],
}

/// What entry points of a kernel differ by: how threads go through its items. In one with the
/// code for two of them, every thread would have the registers of the larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// In runs, where rows are aligned for them, and items at edges by themselves. Of every kernel, and of every task.
    Plain,
    /// Runs from end to end, in a call for each item, which may look over edges: of stencils that see nothing but elements of
    /// items and what is around them, in tasks whose rows are narrow.
    Narrow,
    /// In stacks of runs: of stencils over several dimensions that look around in one buffer and see nothing else but
    /// elements of items, in tasks that look at boxes there.
    Stacked,
    /// As plainly, and where an element is, is found out for each view of a list by itself. All others take it from the first
    /// view of the list: buffers of one size that are accessed alike nearly always have allocations that are, too. On an H200,
    /// D3Q19 over 512³ cells, two lists of 19 views, took 5.6 ms so, and 15.7 with each view by itself, whose registers are too many.
    Apart,
}

/// How a kernel is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Once for each item of the index space.
    Item,
    /// For runs of items along the fastest dimension.
    Row,
    /// For each item, beside the others of its group.
    Group,
}

/// The view that a kernel gets for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewParameter {
    /// Which elements it shows, and in which form.
    pub kind: ViewKind,
    /// Whether it can be written through.
    pub writes: bool,
    /// Dimensions of the buffer.
    pub dims: usize,
    /// Bytes of an element.
    pub size: usize,
    /// Alignment of an element, in bytes.
    pub align: usize,
}

/// What a view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    /// The item's own element, or those of a run: `&T`, `&[T]`.
    Own,
    /// What is around them: `NeighborhoodItem`, `NeighborhoodRow`.
    Neighborhood,
    /// The same in a buffer whose opposite edges meet: `PeriodicItem`, `PeriodicRow`.
    Periodic,
    /// The whole buffer: `WholeView`.
    Whole,
    /// One box, the same for the whole chunk: `PartView`.
    Part,
    /// A box of the item's own: `PartViewMut`.
    OwnPart,
    /// One box that all items of the chunk update: `AtomicView`.
    Shared,
    /// One value that items are combined into: `Reducer`.
    Reducer {
        /// Whether values may change places.
        commutes: bool,
    },
    /// Elements that items are combined into: `ArrayReducer`.
    ArrayReducer {
        /// Whether the order never changes a bit.
        exact: bool,
        /// Whether values may change places.
        commutes: bool,
    },
}

/// A parameter that a kernel takes by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalarParameter {
    /// Its name in the user's source.
    pub name: &'static str,
    /// Its size in bytes.
    pub size: usize,
    /// Its alignment in bytes, a power of two.
    pub align: usize,
}

impl ScalarParameter {
    /// A parameter of type `T`.
    #[must_use]
    pub const fn of<T: Scalar>(name: &'static str) -> Self {
        Self { name, size: size_of::<T>(), align: align_of::<T>() }
    }
}

/// One parameter of an entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its size in bytes.
    pub size: usize,
    /// Its alignment in bytes, a power of two.
    pub align: usize,
}

impl Parameter {
    const fn of<T>() -> Self {
        Self { size: size_of::<T>(), align: align_of::<T>() }
    }
}

/// How threads go through the items of a kernel of this form with these views, by an entry point of that kind; `None` if there is no such
/// entry point. O(views).
///
/// Of a kernel by item, in runs if it is a stencil, so that all that it
/// sees are elements of items and what is around them, of up to 8 bytes. Such a kernel has little to
/// do for each item but to load and to store, which runs do 16 bytes at a time. Any other may have a loop for
/// each item, and needs all threads that there are.
///
/// Of a kernel that reduces, which is called for each item of a tile, also if it is one over rows, as of one by item.
///
/// Of a kernel by row, in runs, half as long if all that it sees are elements of items and
/// what is around them, of 5 to 8 bytes. Of four `f64` a lane would load and store 16 bytes twice, and lanes beside each
/// other not side by side.
#[must_use]
pub const fn traversal(
    entry_kind: EntryKind,
    form: Form,
    views: &[ViewParameter],
) -> Option<Traversal> {
    let plain = plain_traversal(form, views);
    let is_one = match (entry_kind, form) {
        (EntryKind::Plain | EntryKind::Apart, _) => return Some(plain),
        (_, Form::Group) => false,
        _ if reduces(views) => false,
        (EntryKind::Narrow, _) => can_go_by_item(views),
        (EntryKind::Stacked, _) => can_go_by_item(views) && is_around_one_field(views),
    };
    match entry_kind {
        _ if !is_one => None,
        EntryKind::Stacked => Some(Traversal { stack: STACK, is_joined: true, ..plain }),
        _ => Some(Traversal { by_item: true, edges: Edges::InRuns, ..plain }),
    }
}

/// The same by the plain entry point, which every kernel has. O(views).
#[must_use]
pub const fn plain_traversal(form: Form, views: &[ViewParameter]) -> Traversal {
    let by_item = matches!(form, Form::Item) || reduces(views);
    let run = match (form, largest_of_items(views)) {
        (Form::Group, _) => 1,
        _ if by_item && !can_go_by_item(views) => 1,
        (_, 5..=8) => 2,
        _ => RUN,
    };
    let run = if views.len() > MOST_IN_WHOLE_RUNS { shorter(run, views) } else { run };
    let edges = if is_bordered(views) { Edges::Apart } else { Edges::Unseen };
    let is_joined = by_item && run > 1 && views.len() > FEW_VIEWS;
    Traversal { run, by_item, edges, stack: 1, is_joined }
}

/// Kernels with more views than that take shorter runs.
const MOST_IN_WHOLE_RUNS: usize = 20;

/// So many bytes of elements of items a thread has at once at most, where views are many. On an H200, D3Q19 `f32` (38 views) had 3,511,
/// 3,637 and 3,541 GB/s in runs of 4, 2 and 1 items over 512³ cells, and 2,802, 3,507 and 3,502 over 320³.
const MOST_BYTES: usize = 320;

/// The longest part of a run whose elements do not take more. O(views).
const fn shorter(mut run: usize, views: &[ViewParameter]) -> usize {
    let (mut bytes, mut view) = (0, 0);
    while view < views.len() {
        bytes += views[view].size;
        view += 1;
    }
    while run > 1 && run * bytes > MOST_BYTES {
        run /= 2;
    }
    run
}

/// Whether threads of a kernel take several steps along the slowest dimension, where launches are large enough: those of
/// stencils, to whom most of what they look at is the same; and of kernels by item without loops of their own
/// (`is_short`) that see parts of buffers, where a good part of what a thread does is to find out where these are. O(views).
///
/// On an H200, with four steps for one, with parts whose beginnings hosts compute and with nothing left for panics: the shortest paths by
/// way of a node (8192² `f32`, two vectors) took 0.149 ms instead of 0.302, a finer grid from a coarser one (1024³) 3.29 instead of 5.59,
/// and a coarser one 1.09 instead of 1.19. What is the steps' part was not measured. Where there was nothing but elements of items and an
/// exponential, steps alone made 0.326 of 0.282; and a loop around one in the kernel takes registers.
#[must_use]
pub const fn takes_steps(form: Form, views: &[ViewParameter], is_short: bool) -> bool {
    match form {
        Form::Group => false,
        Form::Item if is_short => is_bordered(views) || sees_parts(views),
        Form::Item | Form::Row => is_bordered(views),
    }
}

/// Whether a kernel sees parts of buffers, or whole ones, to read. O(views).
const fn sees_parts(views: &[ViewParameter]) -> bool {
    let mut view = 0;
    while view < views.len() {
        if matches!(views[view].kind, ViewKind::Part | ViewKind::Whole) {
            return true;
        }
        view += 1;
    }
    false
}

/// Whether runs of a kernel may come in a call for each item, of which all together load as one. O(views).
const fn can_go_by_item(views: &[ViewParameter]) -> bool {
    let largest = largest_of_items(views);
    is_bordered(views) && 0 < largest && largest <= 8
}

/// Whether one view alone shows what is around items, in several dimensions. O(views).
///
/// With more, a stack has too many elements at once: on an H200, waves on shallow water, which are three fields, went from 4,080
/// to 2,305 GB/s (`f32`), and a reaction of two from 4,075 to 3,884.
const fn is_around_one_field(views: &[ViewParameter]) -> bool {
    let (mut found, mut is_flat, mut view) = (0, false, 0);
    while view < views.len() {
        let ViewParameter { kind, dims, .. } = views[view];
        if kind.is_bordered() {
            found += 1;
            is_flat |= dims < 2;
        }
        view += 1;
    }
    found == 1 && !is_flat
}

/// A kernel by item with more views is joined with what calls it for runs, whatever a compiler thinks of its size: four calls with
/// eighteen of them were a function of their own, to which all views went through memory.
const FEW_VIEWS: usize = 8;

/// Bytes of the largest element, if a kernel sees nothing but those of items and what is around them, beside what it
/// reduces into; 0 otherwise. O(views).
const fn largest_of_items(views: &[ViewParameter]) -> usize {
    let (mut largest, mut view) = (0, 0);
    while view < views.len() {
        let ViewParameter { kind, size, .. } = views[view];
        if !kind.is_bordered() && !kind.reduces() && !matches!(kind, ViewKind::Own) {
            return 0;
        }
        if !kind.reduces() && size > largest {
            largest = size;
        }
        view += 1;
    }
    largest
}

/// Whether a kernel looks at what is around items. O(views).
const fn is_bordered(views: &[ViewParameter]) -> bool {
    let mut view = 0;
    while view < views.len() {
        if views[view].kind.is_bordered() {
            return true;
        }
        view += 1;
    }
    false
}

/// Whether items are combined into something. O(views).
const fn reduces(views: &[ViewParameter]) -> bool {
    let mut view = 0;
    while view < views.len() {
        if views[view].kind.reduces() {
            return true;
        }
        view += 1;
    }
    false
}

/// As [`Description::slices_begin`], for entry points. O(arrays and views).
#[must_use]
pub const fn slices_begin(form: Form, local: &[LocalParameter], views: &[ViewParameter]) -> usize {
    local_offset(local, local.len()) + scratch_bytes(form, views)
}

/// As [`Description::scratch_bytes`].
const fn scratch_bytes(form: Form, views: &[ViewParameter]) -> usize {
    let values = match form {
        Form::Group => super::MOST_THREADS as usize,
        Form::Item | Form::Row => LANES,
    };
    let (mut largest, mut view) = (0, 0);
    while view < views.len() {
        let ViewParameter { kind, size, .. } = views[view];
        if matches!(kind, ViewKind::Reducer { .. }) && size > largest {
            largest = size;
        }
        view += 1;
    }
    (largest * values).next_multiple_of(ALIGNMENT)
}

impl Description {
    /// Bytes of local memory that each group needs, beside its slices. O(arrays).
    #[must_use]
    pub const fn local_bytes(&self) -> usize {
        local_offset(self.local, self.local.len())
    }

    /// Bytes of memory in which the threads of a block combine what they have: for one reduction
    /// after the other. O(views).
    #[must_use]
    pub const fn scratch_bytes(&self) -> usize {
        scratch_bytes(self.form, self.views)
    }

    /// Where slices of local memory begin in the shared memory of a launch: behind its arrays, and what
    /// reductions need. O(arrays and views).
    #[must_use]
    pub const fn slices_begin(&self) -> usize {
        slices_begin(self.form, self.local, self.views)
    }

    /// Bytes of shared memory that each block takes at least, beside slices of local memory: its arrays,
    /// what reductions need, and the module's own. O(arrays and views).
    #[must_use]
    pub const fn shared_bytes(&self) -> usize {
        self.slices_begin() + MODULE_SHARED_BYTES
    }

    /// The name of its entry point of a kind, if it has one.
    #[must_use]
    pub const fn entry_for(&self, entry_kind: EntryKind) -> Option<&'static str> {
        match entry_kind {
            EntryKind::Plain => Some(self.entry),
            EntryKind::Narrow => self.narrow_entry,
            EntryKind::Stacked => self.stacked_entry,
            EntryKind::Apart => self.apart_entry,
        }
    }

    /// Whether all views of each list are alike, as far as `of` says of each, which is asked for nothing if there are no lists.
    /// O(views).
    pub fn are_alike<T: PartialEq>(&self, of: impl Fn(usize) -> T) -> bool {
        self.behind_firsts().all(|(view, first)| of(view) == of(first))
    }

    /// The views in lists but for the first of each, and that one.
    pub fn behind_firsts(&self) -> impl Iterator<Item = (usize, usize)> {
        let firsts = self.firsts.iter().copied().enumerate();
        firsts.filter(|(view, first)| view != first)
    }

    /// Items of a run, which are as many whatever the entry point. O(views).
    #[must_use]
    pub const fn run(&self) -> usize {
        plain_traversal(self.form, self.views).run
    }

    /// Whether it looks at what is around items. O(views).
    #[must_use]
    pub fn is_bordered(&self) -> bool {
        is_bordered(self.views)
    }

    /// Whether it reduces. O(views).
    #[must_use]
    pub fn reduces(&self) -> bool {
        reduces(self.views)
    }

    /// Whether devices can run it, as far as its signature tells. The reductions among its
    /// accesses that are `unordered` need not have the same bits everywhere. O(views).
    ///
    /// # Errors
    /// See [`Unsuitable`].
    pub fn check_for_devices(&self, unordered: &[usize]) -> Result<(), Unsuitable> {
        for (access, view) in self.views.iter().enumerate() {
            let error = match view.kind {
                ViewKind::Reducer { commutes: false }
                | ViewKind::ArrayReducer { exact: false, commutes: false } => {
                    Unsuitable::InOrder { access }
                }
                ViewKind::ArrayReducer { exact: false, .. } if !unordered.contains(&access) => {
                    Unsuitable::Inexact { access }
                }
                ViewKind::ArrayReducer { .. } if !matches!(view.size, 4 | 8) => {
                    Unsuitable::Size { access, bytes: view.size }
                }
                _ => continue,
            };
            return Err(error);
        }
        match self.parameter_bytes() {
            bytes if bytes > MOST_PARAMETER_BYTES => Err(Unsuitable::Parameters { bytes }),
            _ => Ok(()),
        }
    }

    /// Bytes of all parameters, each at a multiple of its alignment. O(views and values).
    #[must_use]
    pub fn parameter_bytes(&self) -> usize {
        let behind = |end: usize, Parameter { size, align }| end.next_multiple_of(align) + size;
        self.parameters().fold(0, behind)
    }

    /// The entry point's parameters, in order.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> {
        let access = [Parameter::of::<u64>(), Parameter::of::<AccessBlock>()];
        let views = self.views.iter().flat_map(move |_| access);
        let scalars = self
            .scalars
            .iter()
            .map(|&ScalarParameter { size, align, .. }| Parameter { size, align });
        let tiles = self.reduces().then_some(Parameter::of::<TileBlock>());
        let launch = core::iter::once(Parameter::of::<LaunchBlock>()).chain(tiles);
        launch.chain(views).chain(scalars)
    }
}

#[cfg(test)]
impl Description {
    /// A kernel without a name, which takes nothing by value, with the entry points that such a kernel has.
    pub(super) fn unnamed(form: Form, dims: usize, views: &'static [ViewParameter]) -> Self {
        let narrow_entry = traversal(EntryKind::Narrow, form, views).map(|_| "$narrow");
        let stacked_entry = traversal(EntryKind::Stacked, form, views).map(|_| "$stacked");
        let takes_steps = takes_steps(form, views, false);
        let (name, entry) = ("", "");
        Self {
            name,
            entry,
            narrow_entry,
            stacked_entry,
            apart_entry: None,
            takes_steps,
            form,
            dims,
            views,
            firsts: &[],
            scalars: &[],
            local: &[],
        }
    }
}

impl ViewKind {
    /// Whether items are combined through it.
    #[must_use]
    pub const fn reduces(self) -> bool {
        matches!(self, Self::Reducer { .. } | Self::ArrayReducer { .. })
    }

    /// Whether it shows what is around items.
    #[must_use]
    pub const fn is_bordered(self) -> bool {
        matches!(self, Self::Neighborhood | Self::Periodic)
    }
}

/// Why devices cannot run a kernel that CPUs can. Accesses are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsuitable {
    /// It reduces with an operator that takes values in the order of items.
    InOrder {
        /// The position of the access in the tuple, counted from 0.
        access: usize,
    },
    /// It reduces into an array, and the order of items would show in the result.
    Inexact {
        /// The position of the access in the tuple, counted from 0.
        access: usize,
    },
    /// Its parameters do not fit a launch.
    Parameters {
        /// Bytes of all of them.
        bytes: usize,
    },
    /// It reduces into an array whose elements are not updated in one step.
    Size {
        /// The position of the access in the tuple, counted from 0.
        access: usize,
        /// Bytes of an element.
        bytes: usize,
    },
}

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InOrder { access } => write!(
                f,
                "access {access} reduces with an operator that is not commutative, for which GPUs \
                 would have to take one item after the other: set `Operator::IS_COMMUTATIVE` if \
                 values may change places, or run on CPUs"
            ),
            Self::Inexact { access } => write!(
                f,
                "access {access} reduces into an array with an operator whose result depends on \
                 the order of items, as a sum of floats does, which GPUs do not keep there: let the \
                 reduction be `unordered()`, or reduce integers (numbers times a power of two), or \
                 run on CPUs"
            ),
            Self::Parameters { bytes } => write!(
                f,
                "its parameters have {bytes} bytes with those of its views, and GPUs take \
                 {MOST_PARAMETER_BYTES}: put what is large into a buffer, or run on CPUs"
            ),
            Self::Size { access, bytes } => write!(
                f,
                "access {access} reduces into an array of elements of {bytes} bytes, but GPUs \
                 combine 4 or 8 bytes in one step: use elements of that size, or run on CPUs"
            ),
        }
    }
}

impl core::error::Error for Unsuitable {}

const _: () = assert!(size_of::<usize>() == 8, "hosts and devices have 64-bit addresses");

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    const KERNEL: Description = Description {
        name: "step",
        entry: "step",
        narrow_entry: None,
        stacked_entry: None,
        apart_entry: None,
        takes_steps: false,
        form: Form::Item,
        dims: 1,
        firsts: &[],
        views: &[ViewParameter { kind: ViewKind::Own, writes: true, dims: 1, size: 4, align: 4 }],
        scalars: &[ScalarParameter::of::<u8>("a"), ScalarParameter::of::<[u64; 4054]>("b")],
        local: &[],
    };

    #[test]
    fn runs_are_sixteen_bytes_of_what_kernels_see_of_items() {
        const fn view(kind: ViewKind, size: usize) -> ViewParameter {
            ViewParameter { kind, writes: false, dims: 1, size, align: 4 }
        }
        let (own, around) = (ViewKind::Own, ViewKind::Neighborhood);
        let part = view(ViewKind::Part, 8);
        let of = |views: &[ViewParameter]| {
            [Form::Row, Form::Item].map(|form| {
                let plain = traversal(EntryKind::Plain, form, views).unwrap();
                let Traversal { run, by_item, edges, stack, is_joined } = plain;
                assert_eq!((by_item, stack), (form == Form::Item, 1));
                assert_eq!(is_joined, by_item && run > 1 && views.len() > 8);
                assert_eq!(edges == Edges::Apart, is_bordered(views));
                let narrow = traversal(EntryKind::Narrow, form, views);
                let expected = Traversal { by_item: true, edges: Edges::InRuns, ..plain };
                assert!(narrow.is_none_or(|narrow| narrow == expected));
                (run, narrow.is_some())
            })
        };
        // A kernel by item gains by runs if it looks around.
        let wide = |row, item| [(row, false), (item, false)];
        assert_eq!(of(&[view(own, 4), view(own, 4)]), wide(4, 1));
        assert_eq!(of(&[view(own, 8), view(own, 4)]), wide(2, 1));
        assert_eq!(of(&[view(own, 2), view(around, 4)]), [(4, true); 2]);
        assert_eq!(of(&[view(own, 6), view(around, 4)]), [(2, true); 2]);
        // Three fields, and what they are next.
        let [to, from] = [view(own, 4), view(around, 4)];
        assert_eq!(of(&[to, to, to, from, from, from]), [(4, true); 2]);
        assert_eq!(of(&[view(own, 8), view(around, 16)]), wide(4, 1));
        assert_eq!(of(&[view(own, 8), view(around, 8), part]), wide(4, 1));
        assert_eq!(of(&[view(around, 8); 9]), [(2, true); 2]);
        assert_eq!(of(&[view(around, 4); 18]), [(4, true); 2]);
        // In lists: shorter ones, if there is too much of them.
        for (views, run) in [(20, 4), (21, 2), (38, 2), (54, 1)] {
            let lists = std::vec![view(around, 4); views];
            assert_eq!(of(&lists), [(run, run > 0); 2], "{views}");
        }
        assert_eq!(of(&[view(around, 8); 38]), [(1, true); 2]);
        assert_eq!(
            traversal(EntryKind::Narrow, Form::Group, &[view(own, 4), view(around, 4)]),
            None
        );
    }

    #[test]
    fn kernels_that_reduce_are_called_by_item_and_stencils_in_runs() {
        const fn view(kind: ViewKind, size: usize) -> ViewParameter {
            ViewParameter { kind, writes: false, dims: 2, size, align: 4 }
        }
        let (own, around) = (view(ViewKind::Own, 4), view(ViewKind::Neighborhood, 4));
        let value = view(ViewKind::Reducer { commutes: true }, 16);
        let array = view(ViewKind::ArrayReducer { exact: true, commutes: true }, 4);
        for (views, run) in [
            (&[around, own, value][..], 4),
            (&[array, around, value], 4),
            (&[view(ViewKind::Periodic, 8), value], 2),
            (&[around, view(ViewKind::Whole, 4), value], 1),
            (&[own, own, value], 1),
        ] {
            for form in [Form::Item, Form::Row] {
                let plain = plain_traversal(form, views);
                assert_eq!((plain.run, plain.by_item), (run, true), "{views:?} by {form:?}");
                let others = [EntryKind::Narrow, EntryKind::Stacked];
                assert_eq!(others.map(|kind| traversal(kind, form, views)), [None; 2]);
            }
            assert_eq!(plain_traversal(Form::Group, views).run, 1);
        }
    }

    #[test]
    fn stencils_of_one_field_in_several_dimensions_go_in_stacks() {
        const fn view(kind: ViewKind, dims: usize, size: usize) -> ViewParameter {
            ViewParameter { kind, writes: false, dims, size, align: 4 }
        }
        let (own, around) = (ViewKind::Own, ViewKind::Neighborhood);
        let [to, from] = [view(own, 2, 4), view(around, 2, 4)];
        for form in [Form::Item, Form::Row] {
            let of = |views: &[ViewParameter]| traversal(EntryKind::Stacked, form, views);
            let plain = traversal(EntryKind::Plain, form, &[to, from]).unwrap();
            assert_eq!(of(&[to, from]), Some(Traversal { stack: STACK, is_joined: true, ..plain }));
            assert!(of(&[to, to, from]).is_some() && of(&[view(around, 3, 8)]).is_some());
            assert_eq!([of(&[to]), of(&[to, from, from]), of(&[view(around, 1, 4)])], [None; 3]);
            let part = view(ViewKind::Part, 2, 4);
            assert_eq!(of(&[to, from, part]), None);
            assert!(of(&[to, view(ViewKind::Periodic, 2, 1)]).is_some());
            assert_eq!(of(&[to, view(around, 2, 16)]), None);
        }
        assert_eq!(traversal(EntryKind::Stacked, Form::Group, &[to, from]), None);
    }

    #[test]
    fn parameters_must_fit_a_launch() {
        assert_eq!(KERNEL.parameter_bytes(), 128 + 8 + 184 + 8 + 32_432);
        assert_eq!(KERNEL.check_for_devices(&[]), Ok(()));
        const LARGE: &[ScalarParameter] = &[ScalarParameter::of::<[u64; 4056]>("b")];
        let error = Description { scalars: LARGE, ..KERNEL }.check_for_devices(&[]).unwrap_err();
        assert_eq!(error, Unsuitable::Parameters { bytes: 32_768 });
        assert!(error.to_string().contains("32768 bytes"), "{error}");
    }
}
