//! Loading, on a driver without GPUs.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::coded::Coded;
use crate::driver::FakeDriver;

fn coded(source: CodeSource, entry: &'static str) -> Coded {
    Coded { module: CodeModule::new("sample", source), entry }
}

/// Counts its calls; its binaries are its sources.
#[derive(Default)]
struct Copying(AtomicUsize);

impl Compiler for Copying {
    fn compile(
        &self,
        _name: &str,
        source: &str,
        _capability: (u32, u32),
    ) -> Result<Arc<[u8]>, CompileError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match source {
            "wrong" => Err(CompileError::Rejected("line 1: wrong".to_owned())),
            source => Ok(source.as_bytes().into()),
        }
    }
}

fn loader(gpus: usize, compiler: Option<Arc<dyn Compiler>>) -> CodeLoader {
    let fake = FakeDriver::new(gpus, 1 << 20).with_kernel("step", |_| Ok(()));
    let fake = fake.with_parameter_bytes("step", 24);
    CodeLoader::new(Arc::new(fake), compiler, vec![(9, 0); gpus])
}

fn gpu(slot: u16) -> Gpu {
    Gpu::from_slot(slot)
}

#[test]
fn source_is_compiled_once_per_architecture() {
    let compiler = Arc::new(Copying::default());
    let loader = loader(2, Some(compiler.clone()));
    let code = coded(CodeSource::CudaCpp("step".into()), "step");
    for slot in [0, 1, 0] {
        loader.entry(gpu(slot), (&code, code.entry())).unwrap();
    }
    assert_eq!(compiler.0.load(Ordering::SeqCst), 1);
}

/// A module as `#[kernel]` makes it, of two kernels and a function for one of them.
const OF_KERNELS: &str = "
.version 7.0
.visible .global .align 8 .b8 celerity_record[8];
.func help() { ret; }
.visible .entry step() { call help; }
.visible .entry leap() { ret; }
";

#[test]
fn of_kernels_of_a_module_each_is_loaded_when_it_is_used() {
    let fake = || FakeDriver::new(2, 1 << 20).with_kernel("step", |_| Ok(()));
    let fake = || fake().with_kernel("leap", |_| Ok(()));
    for (text, loads) in
        [(OF_KERNELS.to_owned(), [1, 2, 2, 3]), (OF_KERNELS.replace("_record", ""), [1, 1, 1, 2])]
    {
        let driver = Arc::new(fake());
        let loader = CodeLoader::new(driver.clone(), None, vec![(9, 0); 2]);
        let module = CodeModule::new("sample", CodeSource::Ptx(text.into()));
        let calls = [("step", 0), ("leap", 0), ("step", 0), ("leap", 1)];
        for ((entry, slot), loads) in calls.into_iter().zip(loads) {
            let code = Coded { module: module.clone(), entry };
            loader.entry(gpu(slot), (&code, code.entry())).unwrap();
            assert_eq!(driver.counts().loads, loads, "{entry}");
        }
        let code = Coded { module, entry: "hop" };
        let error = loader.entry(gpu(0), (&code, code.entry())).unwrap_err();
        assert!(matches!(error, CodeError::MissingEntry { .. }), "{error}");
    }
}

#[test]
fn what_is_wrong_with_code_is_told() {
    let compiler: Arc<dyn Compiler> = Arc::new(Copying::default());
    let loader = loader(1, Some(compiler));
    let error = |source, entry| {
        loader.entry(gpu(0), (&coded(source, entry), entry)).unwrap_err().to_string()
    };
    let text = error(CodeSource::CudaCpp("wrong".into()), "step");
    assert_eq!(text, "module `sample` does not compile:\nline 1: wrong");
    let text = error(CodeSource::Ptx("".into()), "step");
    assert!(text.starts_with("module `sample` cannot be loaded on GPU 0: "), "{text}");
    let text = error(CodeSource::Ptx("step".into()), "stop");
    assert!(text.starts_with("module `sample` has no kernel `stop`"), "{text}");
}

#[test]
fn source_without_a_compiler_is_refused() {
    let code = coded(CodeSource::CudaCpp("step".into()), "step");
    let error = loader(1, None).entry(gpu(0), (&code, code.entry())).unwrap_err();
    assert!(matches!(error, CodeError::NoCompiler { .. }), "{error}");
}

#[test]
fn parameters_are_compared_where_the_driver_knows_them() {
    let loader = loader(1, None);
    let code = coded(CodeSource::Ptx("step".into()), "step");
    assert_eq!(loader.check(gpu(0), &code, 2), Ok(()));
    let error = loader.check(gpu(0), &code, 3).unwrap_err();
    assert!(matches!(error, CodeError::Parameters { expected: 24, given: 32, .. }), "{error}");
}

#[test]
fn code_for_newer_gpus_alone_is_refused() {
    let text = |architecture: u32| (architecture, Cow::Borrowed("step"));
    let loader = loader(1, None);
    let for_all = coded(CodeSource::PtxFor(vec![text(80), text(100)]), "step");
    loader.entry(gpu(0), (&for_all, for_all.entry())).unwrap();
    let error = loader.entry(gpu(0), (&coded(CodeSource::PtxFor(vec![text(100)]), "step"), "step"));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("`sample`") && error.contains("capability 9.0"), "{error}");
    assert!(error.contains("build script"), "{error}");
}

/// A kernel whose groups need so many bytes.
struct Hungry(Coded, u64);

// SAFETY: it is never launched.
unsafe impl DeviceCode for Hungry {
    fn module(&self) -> &Arc<CodeModule> {
        self.0.module()
    }

    fn entry(&self) -> &str {
        self.0.entry()
    }

    fn shared_bytes(&self) -> u64 {
        self.1
    }

    fn launch(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<celerity_executor::Launch, Box<dyn std::error::Error + Send + Sync>> {
        self.0.launch(chunk, memory)
    }
}

#[test]
fn groups_that_need_too_much_memory_are_refused() {
    let fake = FakeDriver::new(1, 1 << 20).with_kernel("step", |_| Ok(()));
    let gpus = crate::Gpus::new(Arc::new(fake), None).unwrap();
    let check = |bytes| {
        let code = Hungry(coded(CodeSource::Ptx("step".into()), "step"), bytes);
        gpus.check(&[gpu(0)], &code, 0)
    };
    // What has to be asked for counts as well.
    assert_eq!(check(227 << 10), Ok(()));
    let error = check((227 << 10) + 1).unwrap_err().to_string();
    assert!(error.contains("kernel `step`") && error.contains("GPU 0 has 232448"), "{error}");
    assert!(error.contains("needs 232449 bytes"), "{error}");
}
