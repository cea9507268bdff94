//! Kernels that `#[kernel]` has made of functions: CPUs call them, as they would
//! call a closure; other devices launch what was compiled for them. Knows no
//! driver.

use std::borrow::Cow;
use std::error::Error;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use celerity_executor::{
    BoundMemory, CodeModule, CodeSource, DeviceCode, DeviceKernel, Launch, NoDeviceCode, Parameters,
};
use celerity_kernel::abi::{
    AccessKind, AccessMemory, Chunk, Description, EntryKind, Geometry, Mapping, Tiles,
    block_within, check_signature, gains_by_stacks, halves,
};
use celerity_kernel::{Kernel, Module};
use celerity_regions::Box3;
use celerity_tdag::{AccessMode, Mapper, NeighborhoodShape, Tiling};

use super::{Launched, Space, sides};
use crate::access::Mapped;
use crate::range::bounds;

/// A compiled kernel beside the same kernel for CPUs. The compiled one is looked
/// for when a device first asks for it: CPUs never do.
pub(crate) struct CompiledKernel<H, W> {
    host: H,
    kernel: W,
    /// Threads of a block, if the program wants so many.
    block: Option<[usize; 3]>,
    code: OnceLock<Result<Code, NoDeviceCode>>,
}

/// What of a module is launched.
struct Code {
    module: Arc<CodeModule>,
    /// By which of its entry points.
    entry_kind: EntryKind,
}

impl<H, W: Kernel> CompiledKernel<H, W> {
    pub(crate) fn new(host: H, kernel: W, block: Option<[usize; 3]>) -> Self {
        Self { host, kernel, block, code: OnceLock::new() }
    }
}

impl<H: Launched, W: Kernel> CompiledKernel<H, W> {
    fn code(&self) -> Result<&Code, &NoDeviceCode> {
        let find = || {
            let (module, has_stacks) = module_of(W::module(), &W::DESCRIPTION)?;
            let Space { global, mappers, .. } = self.host.space();
            let accesses: Vec<_> =
                mappers.iter().map(|mapped| access_kind(mapped, &global)).collect();
            let stacked_entry = W::DESCRIPTION.stacked_entry.filter(|_| has_stacks);
            let kernel = Description { stacked_entry, ..W::DESCRIPTION };
            // What the host alone can evaluate may be anywhere.
            let is_known = |view: usize| accesses[view].mapping != Mapping::Opaque;
            let are_known = kernel.behind_firsts().all(|(view, _)| is_known(view));
            let entry_kind = match are_known && kernel.are_alike(|view| accesses[view]) {
                true => kernel.entry_kind(&bounds(&global), accesses),
                false => EntryKind::Apart,
            };
            Ok(Code { module, entry_kind })
        };
        self.code.get_or_init(find).as_ref()
    }

    /// The same where it has been looked for.
    fn found(&self) -> &Code {
        self.code().expect("`device_code` gives this out if there is a module")
    }

    /// By which entry point a chunk is launched that is bound to this memory.
    fn entry_kind(&self, memory: &[BoundMemory<'_>]) -> EntryKind {
        // Each of a list is accessed alike: what was declared of one chunk is alike if the buffers' allocations are.
        match W::DESCRIPTION.are_alike(|view| memory[view].extent()) {
            true => self.found().entry_kind,
            false => EntryKind::Apart,
        }
    }
}

/// The name of an entry point of a kernel.
fn entry_name<W: Kernel>(entry_kind: EntryKind) -> &'static str {
    let entry = W::DESCRIPTION.entry_for(entry_kind);
    entry.expect("a task asks for a kind of entry point that its kernel has")
}

impl<H: Launched, W: Kernel> DeviceKernel for CompiledKernel<H, W> {
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        // SAFETY: passed on; both forms are of one task, with one list of accesses.
        unsafe { self.host.run(chunk, memory) }
    }

    fn is_serial(&self, chunk: &Box3) -> bool {
        self.host.is_serial(chunk)
    }

    fn device_code(&self) -> Result<&dyn DeviceCode, NoDeviceCode> {
        W::DESCRIPTION.check_for_devices(self.host.space().unordered).map_err(|error| {
            let reason = format!("kernel `{}`: {error}", W::DESCRIPTION.name);
            NoDeviceCode { reason: reason.into() }
        })?;
        self.code().map_err(Clone::clone)?;
        Ok(self)
    }
}

// SAFETY: as `Kernel` promises, the code touches nothing but what `put_launch` is told that the memory holds;
// `module_of` has compared the parameters. It is made
// in `TaskBuilder::submit_compiled` alone, which submits it with the accesses of its launch.
unsafe impl<H: Launched, W: Kernel> DeviceCode for CompiledKernel<H, W> {
    fn module(&self) -> &Arc<CodeModule> {
        &self.found().module
    }

    fn entry(&self) -> &str {
        entry_name::<W>(self.found().entry_kind)
    }

    fn entry_for(&self, memory: &[BoundMemory<'_>]) -> &str {
        entry_name::<W>(self.entry_kind(memory))
    }

    fn shared_bytes(&self) -> u64 {
        W::DESCRIPTION.shared_bytes().saturating_add(self.kernel.slice_bytes()) as u64
    }

    fn launch(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn Error + Send + Sync>> {
        self.launch_in(self.block, chunk, memory)
    }

    fn launch_within(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
        threads: u32,
    ) -> Result<Launch, Box<dyn Error + Send + Sync>> {
        let block = self.block.map(|block| block_within(block, threads as usize));
        self.launch_in(block, chunk, memory)
    }

    fn halves(&self, chunk: &Box3) -> Option<[Box3; 2]> {
        let words = |corner: [usize; 3]| corner.map(|coordinate| coordinate as u64);
        let halves = halves(&W::DESCRIPTION, &bounds(chunk), self.host.space().group)?;
        Some(halves.map(|half| Box3::new(words(half.min()), words(half.max()))))
    }
}

impl<H: Launched, W: Kernel> CompiledKernel<H, W> {
    /// The launch for a chunk, in blocks that are wanted, if any are.
    fn launch_in(
        &self,
        block: Option<[usize; 3]>,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn Error + Send + Sync>> {
        let Space { global, mappers, group, tiling, .. } = self.host.space();
        let accesses: Vec<_> =
            mappers.iter().zip(memory).map(|it| access_memory(it, &global)).collect();
        let global = size(&global);
        let (items, tiles) = (bounds(chunk), tiling.map(tiles));
        let entry_kind = self.entry_kind(memory);
        let chunk = Chunk { items, global, group, tiles, block, entry_kind };
        let mut parameters = Parameters::default();
        let mut append = |bytes: &[u8], alignment| parameters.push_bytes(bytes, alignment);
        let shape = self.kernel.put_launch(&chunk, &accesses, &mut append)?;
        let Geometry { grid, block, shared_bytes } = shape;
        Ok(Launch { grid, block, shared_bytes, parameters })
    }
}

pub(super) fn tiles(tiling: &Tiling) -> Tiles {
    let index = |coordinates: [u64; 3]| {
        coordinates.map(|coordinate| usize::try_from(coordinate).unwrap_or(usize::MAX))
    };
    Tiles {
        origin: index(tiling.space().min()),
        tile: index(tiling.tile()),
        grid: index(tiling.grid()),
        slowest: usize::from(tiling.slowest()),
    }
}

fn access_kind(Mapped { mapper, buffer, mode }: &Mapped, global: &Box3) -> AccessKind {
    let updates = *mode == AccessMode::ReadWrite;
    let mapping = mapping(mapper, (global, buffer));
    AccessKind { mapping, buffer: size(buffer), updates }
}

fn access_memory(
    (Mapped { mapper, buffer, .. }, memory): (&Mapped, &BoundMemory<'_>),
    global: &Box3,
) -> AccessMemory {
    AccessMemory {
        address: memory.base() as u64,
        extent: bounds(memory.extent()),
        part: bounds(&memory.region().bounding_box()),
        buffer: size(buffer),
        mapping: mapping(mapper, (global, buffer)),
    }
}

/// The size of a space or a buffer, which begins with 0.
fn size(of: &Box3) -> [usize; 3] {
    bounds::<3>(of).range()
}

/// What `mapper` comes to, from items of `global` to elements of `buffer`.
fn mapping(mapper: &Mapper, (global, buffer): (&Box3, &Box3)) -> Mapping {
    let index = |coordinate: u64| usize::try_from(coordinate).unwrap_or(usize::MAX);
    match mapper {
        Mapper::OneToOne => Mapping::OneToOne,
        Mapper::All => Mapping::All,
        Mapper::Neighborhood { border, shape } => Mapping::Neighborhood {
            border: border.map(index),
            axes_only: *shape == NeighborhoodShape::AlongAxes,
        },
        Mapper::Periodic { border, shape, along } => Mapping::Periodic {
            border: border.map(index),
            axes_only: *shape == NeighborhoodShape::AlongAxes,
            along: *along,
        },
        Mapper::Tiles(_) => Mapping::Tiles,
        Mapper::Slice { .. } | Mapper::PerDimension(_) => {
            let sides = sides::of(mapper, global, buffer);
            sides.map_or(Mapping::Opaque, |sides| Mapping::PerDimension { sides })
        }
        Mapper::Fixed(_) | Mapper::User(_) => Mapping::Opaque,
    }
}

/// A module that has been looked at.
struct Known {
    module: &'static Module,
    loadable: Arc<CodeModule>,
    /// The kernels that are called as hosts describe them, by their entry points, and whether they gain by stacks.
    sound: Vec<(&'static str, bool)>,
}

/// The module as backends know it: always the same `Arc` for the same crate of
/// kernels, since they load by address. Its entry points for the kernel have been
/// compared with what the host passes. And whether that for stacks is worth it.
fn module_of(
    module: &'static Module,
    kernel: &Description,
) -> Result<(Arc<CodeModule>, bool), NoDeviceCode> {
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let unavailable = |error: &dyn Error| NoDeviceCode { reason: error.to_string().into() };
    let texts = module.compiled().map_err(|error| unavailable(&error))?;
    // Whoever panicked in here has left the list as it was.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let index = known.iter().position(|other| std::ptr::eq(other.module, module));
    let index = index.unwrap_or_else(|| {
        let loadable = texts.iter().map(|ptx| (ptx.architecture, Cow::Borrowed(ptx.text)));
        let loadable = CodeModule::new(module.name(), CodeSource::PtxFor(loadable.collect()));
        known.push(Known { module, loadable, sound: Vec::new() });
        known.len() - 1
    });
    let known = &mut known[index];
    let found = known.sound.iter().find(|(entry, _)| *entry == kernel.entry);
    let gains = match found {
        Some((_, gains)) => *gains,
        None => {
            for ptx in texts {
                check_signature(ptx.text, kernel).map_err(|error| unavailable(&error))?;
            }
            let gains = texts.iter().all(|ptx| gains_by_stacks(ptx.text, kernel));
            known.sound.push((kernel.entry, gains));
            gains
        }
    };
    Ok((known.loadable.clone(), gains))
}

#[cfg(test)]
mod tests {
    use celerity_kernel::abi::Form;
    use celerity_kernel::{Code, Ptx};

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
        views: &[],
        scalars: &[],
        local: &[],
    };
    const STALE: Ptx = Ptx { architecture: 80, text: ".visible .entry other(\n)\n{\n}" };

    // SAFETY: nothing launches what it does not have.
    static MODULE: Module = unsafe { Module::new("waves", Code::Ptx(&[])) };
    // SAFETY: as above; it has no kernel of that name.
    static OLD: Module = unsafe { Module::new("waves", Code::Ptx(&[STALE])) };
    static MISSING: Module = Module::without_code("waves", "install it");

    #[test]
    fn a_module_is_the_same_every_time() {
        let module = || module_of(&MODULE, &KERNEL).unwrap().0;
        let (first, second) = (module(), module());
        assert!(Arc::ptr_eq(&first, &second));
    }

    #[test]
    fn code_that_was_not_built_says_how_to_get_it() {
        let error = module_of(&MISSING, &KERNEL).unwrap_err().to_string();
        assert!(error.contains("`waves`") && error.ends_with("install it"), "{error}");
    }

    /// A kernel of another crate, on the host's side, and which of its accesses reduce in any order.
    struct Host(&'static [usize]);

    impl DeviceKernel for Host {
        unsafe fn run(&self, _chunk: &Box3, _memory: &[BoundMemory<'_>]) {
            unreachable!("nothing is run here");
        }
    }

    impl Launched for Host {
        fn space(&self) -> Space<'_> {
            let (global, group) = (Box3::UNIT, [1; 3]);
            Space { global, mappers: &[], group, tiling: None, unordered: self.0 }
        }
    }

    #[test]
    fn what_gpus_do_not_reduce_is_refused() {
        use celerity_example_kernels::reductions::{dot, in_order, sums_by_kind};
        let refused = |kernel: &dyn DeviceKernel| {
            kernel.device_code().map(drop).unwrap_err().reason.to_string()
        };
        let text = refused(&CompiledKernel::new(Host(&[1]), in_order, None));
        assert!(text.starts_with("kernel `in_order`: access 1 ") && text.contains("commutative"));
        for other in [&[][..], &[0]] {
            let text = refused(&CompiledKernel::new(Host(other), sums_by_kind, None));
            assert!(text.starts_with("kernel `sums_by_kind`: access 1 "), "{text}");
            assert!(text.contains("let the reduction be `unordered()`"), "{text}");
        }
        let taken = CompiledKernel::new(Host(&[1]), sums_by_kind, None).device_code().map(drop);
        assert!(taken.is_ok(), "{taken:?}");
        let taken = CompiledKernel::new(Host(&[]), dot, None).device_code().map(drop);
        assert!(taken.is_ok(), "{taken:?}");
    }

    #[test]
    fn lists_of_buffers_that_are_not_alike_have_an_entry_point() {
        use celerity_example_kernels::lattice::lattice_step;
        const STEP: Description = <lattice_step as Kernel>::DESCRIPTION;
        assert_eq!(STEP.firsts, [[0; 9], [9; 9]].concat());
        assert_eq!(STEP.entry_for(EntryKind::Apart), Some("lattice_step$apart"));
        let mut of_views = [['a'; 9], ['b'; 9]].concat();
        assert!(STEP.are_alike(|view| of_views[view]));
        for other in [3, 9, 17] {
            let before = std::mem::replace(&mut of_views[other], 'c');
            assert!(!STEP.are_alike(|view| of_views[view]), "{other}");
            of_views[other] = before;
        }
        assert!(KERNEL.are_alike(|view| ['a', 'b'][view]));
    }

    #[test]
    fn stale_code_is_not_launched() {
        let error = module_of(&OLD, &KERNEL).unwrap_err().to_string();
        assert!(error.contains("step"), "{error}");
    }
}
