//! Range mappers that users write, and when two of them are the same. Knows
//! neither what they compute nor the built-in ones.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::needs_drop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use celerity_regions::Region;

use super::MapperInput;
use super::relation::DimRelation;

/// A user's range mapper.
///
/// An implementation must obey the laws of [`Mapper`](super::Mapper). A mapper that breaks
/// them cannot make the safe API unsound (kernels are confined to what was
/// declared for their chunk), but may make a program fail or see old data.
///
/// If it panics while it is asked, whoever has asked unwinds with a [`MapperPanic`].
///
/// It is dropped by whichever thread uses it last. If that panics, the panic hook tells it, and
/// nothing else comes of it: nobody needs the mapper any more.
pub trait RangeMapper: Any + Send + Sync {
    /// The elements that `input.chunk` touches; never looked at outside of
    /// `input.buffer` once submission has accepted the task.
    fn map(&self, input: &MapperInput) -> Region;

    /// A name for messages and graphs.
    fn name(&self) -> &str {
        "user mapper"
    }

    /// How the image depends on the chunk along dimension `dim` of the buffer, 0 to 2, for stages
    /// that reason about it. It is believed where nothing goes wrong if it is a lie: commands are
    /// made of what [`map`](Self::map) says of each chunk. [`verify_mapper`](crate::verify_mapper)
    /// holds a mapper to it.
    fn relation(&self, dim: usize) -> DimRelation {
        let _ = dim;
        DimRelation::Opaque
    }

    /// Whether the image is the same for all chunks that are not empty. Believed as
    /// [`relation`](Self::relation) is. Asked once, when the mapper is wrapped.
    fn is_constant(&self) -> bool {
        false
    }

    /// Whether this is the same mapper as `other`. One without state is the same as any of its
    /// type, and is not asked; others are the same as their clones at least. A type that compares
    /// its values says so: `(other as &dyn Any).downcast_ref() == Some(self)`.
    fn is_same(&self, other: &dyn RangeMapper) -> bool {
        let _ = other;
        false
    }
}

impl<F: Fn(&MapperInput) -> Region + Send + Sync + 'static> RangeMapper for F {
    fn map(&self, input: &MapperInput) -> Region {
        self(input)
    }
}

/// A shared [`RangeMapper`]: equal to its clones, and if it has no state (as a
/// closure without captures), to whatever is of the same type.
#[derive(Clone)]
pub struct UserMapper {
    function: Function,
    disjoint: bool,
    /// What it says of itself when it is wrapped: its owner's threads are asked, and nobody later.
    constant: bool,
}

#[derive(Clone)]
enum Function {
    /// Has no state, so that nothing has to be allocated or counted: programs
    /// make a closure anew for each task.
    Stateless(&'static dyn RangeMapper),
    Shared {
        mapper: Arc<dyn RangeMapper>,
        owns: bool,
    },
}

impl UserMapper {
    /// Wraps a mapper for reading accesses and single-chunk tasks.
    #[must_use]
    pub fn new(mapper: impl RangeMapper) -> Self {
        Self::wrap(mapper, false)
    }

    /// Wraps a mapper whose images of disjoint chunks are disjoint, so that a
    /// split task may write through it. The generators check the claim for the
    /// chunks that they create and report an overlap as a diagnostic.
    #[must_use]
    pub fn disjoint(mapper: impl RangeMapper) -> Self {
        Self::wrap(mapper, true)
    }

    fn wrap(mapper: impl RangeMapper, disjoint: bool) -> Self {
        let constant = mapper.is_constant();
        Self { function: Function::of(mapper), disjoint, constant }
    }

    /// Whether it owns something, so that who keeps it keeps that: perhaps a buffer.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        matches!(&self.function, Function::Shared { owns: true, .. })
    }

    /// Whether this is a clone of `other`, or has as little state. Asks no code of the user's, so
    /// it finds fewer to be the same than `==`.
    #[must_use]
    pub fn is_clone_of(&self, other: &Self) -> bool {
        let same = match (&self.function, &other.function) {
            (Function::Shared { mapper, .. }, Function::Shared { mapper: other, .. }) => {
                Arc::ptr_eq(mapper, other)
            }
            (one, other) => one == other,
        };
        same && self.disjoint == other.disjoint
    }

    /// Whether the images of disjoint chunks are said to be disjoint.
    pub(super) fn is_disjoint(&self) -> bool {
        self.disjoint
    }

    /// What the user says of a chunk.
    pub(super) fn map(&self, input: &MapperInput) -> Region {
        asked(|| self.mapper().map(input))
    }

    /// What the user says of a dimension.
    pub(super) fn relation(&self, dim: usize) -> DimRelation {
        asked(|| self.mapper().relation(dim))
    }

    /// What the user has said of all chunks.
    pub(super) fn is_constant(&self) -> bool {
        self.constant
    }

    /// What the user calls it.
    pub(super) fn name(&self) -> &str {
        asked(|| self.mapper().name())
    }

    fn mapper(&self) -> &dyn RangeMapper {
        match &self.function {
            Function::Stateless(mapper) => *mapper,
            Function::Shared { mapper, .. } => &**mapper,
        }
    }
}

/// What unwinds whoever has asked a user's mapper that panics: so that this can be told from a
/// panic of the graphs, which evaluate mappers in the middle of their own work. The panic hook has
/// told what was said.
pub struct MapperPanic(Box<dyn Any + Send>);

impl MapperPanic {
    /// What the mapper has panicked with.
    #[must_use]
    pub fn payload(&self) -> &(dyn Any + Send) {
        &*self.0
    }

    /// What the user's code has panicked with, of a caught panic: of a mapper, if it is one.
    #[must_use]
    pub fn unwrapped(caught: Box<dyn Any + Send>) -> Box<dyn Any + Send> {
        caught.downcast::<Self>().map_or_else(|other| other, |panic| panic.0)
    }
}

impl fmt::Debug for MapperPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MapperPanic")
    }
}

/// Calls code of the user's, and nothing else.
fn asked<T>(ask: impl FnOnce() -> T) -> T {
    let answer = catch_unwind(AssertUnwindSafe(ask));
    answer.unwrap_or_else(|payload| resume_unwind(Box::new(MapperPanic(payload))))
}

impl Function {
    fn of<M: RangeMapper>(mapper: M) -> Self {
        if needs_drop::<M>() {
            return Self::Shared { mapper: Arc::new(Contained(Some(mapper))), owns: true };
        }
        if size_of::<M>() > 0 {
            return Self::Shared { mapper: Arc::new(mapper), owns: false };
        }
        // The box of a value without size is no allocation: nothing leaks.
        Self::Stateless(Box::leak(Box::new(mapper)))
    }
}

/// A mapper whose end cannot unwind into whoever drops it: graphs keep many in one list.
struct Contained<M: RangeMapper>(Option<M>);

impl<M: RangeMapper> Contained<M> {
    fn get(&self) -> &M {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl<M: RangeMapper> RangeMapper for Contained<M> {
    fn map(&self, input: &MapperInput) -> Region {
        self.get().map(input)
    }

    fn name(&self) -> &str {
        self.get().name()
    }

    fn relation(&self, dim: usize) -> DimRelation {
        self.get().relation(dim)
    }

    fn is_same(&self, other: &dyn RangeMapper) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref::<Self>().is_some_and(|other| self.get().is_same(other.get()))
    }
}

impl<M: RangeMapper> Drop for Contained<M> {
    fn drop(&mut self) {
        let panic = catch_unwind(AssertUnwindSafe(|| drop(self.0.take()))).err();
        panic.into_iter().for_each(discard);
    }
}

const MOST_PANICS: usize = 16;

/// Drops what something has panicked with, which may panic with something else; each is dropped,
/// but not without end.
pub(super) fn discard(payload: Box<dyn Any + Send>) {
    let mut panic = Some(payload);
    for _ in 0..MOST_PANICS {
        let Some(payload) = panic.take() else { return };
        panic = catch_unwind(AssertUnwindSafe(|| drop(payload))).err();
    }
    std::mem::forget(panic);
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Stateless(left), Self::Stateless(right)) => {
                let (left, right): (&dyn Any, &dyn Any) = (*left, *right);
                left.type_id() == right.type_id()
            }
            (Self::Shared { mapper: left, .. }, Self::Shared { mapper: right, .. }) => {
                Arc::ptr_eq(left, right) || asked(|| left.is_same(&**right))
            }
            _ => false,
        }
    }
}

impl Hash for Function {
    /// By type alone: values of one type may be the same.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mapper: &dyn Any = match self {
            Self::Stateless(mapper) => *mapper,
            Self::Shared { mapper, .. } => &**mapper,
        };
        mapper.type_id().hash(state);
    }
}

impl PartialEq for UserMapper {
    fn eq(&self, other: &Self) -> bool {
        self.function == other.function && self.disjoint == other.disjoint
    }
}

impl Eq for UserMapper {}

impl Hash for UserMapper {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
    }
}

impl fmt::Debug for UserMapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserMapper({})", self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use celerity_regions::Box3;

    use super::*;

    #[test]
    fn functions_without_state_are_equal_if_they_are_the_same() {
        let all = |input: &MapperInput| Region::from(input.buffer);
        let nothing = |_: &MapperInput| Region::empty();
        assert_eq!(UserMapper::new(all), UserMapper::new(all));
        assert_ne!(UserMapper::new(all), UserMapper::new(nothing));
        assert_ne!(UserMapper::new(all), UserMapper::disjoint(all));
    }

    #[test]
    fn functions_with_state_are_equal_to_their_clones_alone() {
        let fixed = |at: Box3| UserMapper::new(move |_: &MapperInput| Region::from(at));
        let unit = fixed(Box3::UNIT);
        assert_eq!(unit, unit.clone());
        assert_ne!(unit, fixed(Box3::UNIT));
    }

    #[test]
    fn mappers_that_panic_when_they_are_dropped_harm_nobody() {
        struct Fragile(usize);
        impl Drop for Fragile {
            fn drop(&mut self) {
                DROPPED.fetch_add(1, Ordering::Relaxed);
                match self.0 {
                    0 => panic!("broken"),
                    more => std::panic::panic_any(Fragile(more - 1)),
                }
            }
        }
        static DROPPED: AtomicU32 = AtomicU32::new(0);
        let fragile = |chain| {
            let fragile = Fragile(chain);
            UserMapper::new(move |_: &MapperInput| {
                let _ = &fragile;
                Region::empty()
            })
        };
        drop(vec![fragile(0), fragile(2), fragile(0)]);
        assert_eq!(DROPPED.load(Ordering::Relaxed), 5);
    }

    #[test]
    fn who_asks_a_mapper_that_panics_can_tell_that_it_was_the_mapper() {
        struct Broken;
        impl RangeMapper for Broken {
            fn map(&self, _: &MapperInput) -> Region {
                std::panic::panic_any(7_u8)
            }

            fn name(&self) -> &str {
                panic!("no name")
            }
        }
        let (mapper, unit) = (UserMapper::new(Broken), Box3::UNIT);
        let input = MapperInput { chunk: unit, global: unit, buffer: unit };
        let asked = catch_unwind(AssertUnwindSafe(|| mapper.map(&input))).unwrap_err();
        let panic = asked.downcast_ref::<MapperPanic>().expect("it was the mapper");
        assert_eq!(panic.payload().downcast_ref(), Some(&7_u8));
        assert_eq!(MapperPanic::unwrapped(asked).downcast_ref(), Some(&7_u8));
        let named = catch_unwind(AssertUnwindSafe(|| mapper.name().to_owned())).unwrap_err();
        assert_eq!(MapperPanic::unwrapped(named).downcast_ref(), Some(&"no name"));
        let own = catch_unwind(|| panic!("a graph's own")).unwrap_err();
        assert_eq!(MapperPanic::unwrapped(own).downcast_ref(), Some(&"a graph's own"));
    }

    #[test]
    fn what_a_mapper_without_size_owns_is_dropped() {
        struct Token;
        impl Drop for Token {
            fn drop(&mut self) {
                DROPPED.fetch_add(1, Ordering::Relaxed);
            }
        }
        static DROPPED: AtomicU32 = AtomicU32::new(0);
        let token = Token;
        drop(UserMapper::new(move |_: &MapperInput| {
            let _ = &token;
            Region::empty()
        }));
        assert_eq!(DROPPED.load(Ordering::Relaxed), 1);
    }
}
