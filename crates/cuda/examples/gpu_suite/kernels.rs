//! Kernels from assembly and from CUDA C++, in every dimension.
#![allow(unsafe_code)]

use std::sync::Arc;

use celerity_cuda::{Compiler, CudaKernel, Nvrtc, NvrtcConfig};
use celerity_executor::{
    BoundMemory, CodeModule, CodeSource, DeviceCode, DeviceKernel, Launch, NoDeviceCode, Parameters,
};
use celerity_regions::Box3;

use crate::node::{Node, device_memory, kernel_job, kernel_lane};
use crate::{Outcome, Suite, expect_equal};

/// `data[i] += 1` for `count` 64-bit numbers.
const INCREMENT: &str = "
.version 7.0
.target sm_75
.address_size 64
.visible .entry increment(.param .u64 count, .param .u64 base)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .b64 %rd<6>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    cvt.u64.u32 %rd1, %r4;
    ld.param.u64 %rd2, [count];
    setp.ge.u64 %p, %rd1, %rd2;
    @%p bra DONE;
    ld.param.u64 %rd3, [base];
    cvta.to.global.u64 %rd3, %rd3;
    shl.b64 %rd4, %rd1, 3;
    add.s64 %rd4, %rd3, %rd4;
    ld.global.u64 %rd5, [%rd4];
    add.s64 %rd5, %rd5, 1;
    st.global.u64 [%rd4], %rd5;
DONE:
    ret;
}
";

/// A kernel that does without our header.
pub(crate) struct Increment {
    module: Arc<CodeModule>,
}

impl Increment {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { module: CodeModule::new("increment", CodeSource::Ptx(INCREMENT.into())) })
    }
}

// SAFETY: the code touches the items of the chunk in the words of its one access, which binds
// these.
unsafe impl DeviceCode for Increment {
    fn module(&self) -> &Arc<CodeModule> {
        &self.module
    }

    fn entry(&self) -> &'static str {
        "increment"
    }

    fn launch(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn std::error::Error + Send + Sync>> {
        let mut parameters = Parameters::default();
        parameters.push(chunk.volume());
        memory.iter().for_each(|memory| parameters.push_address(memory.base()));
        let blocks = u32::try_from(chunk.volume().div_ceil(128)).expect("small");
        Ok(Launch { grid: [blocks, 1, 1], block: [128, 1, 1], shared_bytes: 0, parameters })
    }
}

impl DeviceKernel for Increment {
    unsafe fn run(&self, _chunk: &Box3, _memory: &[BoundMemory<'_>]) {
        unreachable!("there are no CPU devices here");
    }

    fn device_code(&self) -> Result<&dyn DeviceCode, NoDeviceCode> {
        Ok(self)
    }
}

/// CUDA C++ that uses the header in all dimensions.
const SOURCE: &str = r#"
#include "celerity.cuh"
using namespace celerity;

extern "C" __global__ void axpy(chunk<1> part, view<const float, 1> x, view<float, 1> y, float a) {
    for_each_item(part, [&](item<1> it) { y[it] += a * x[it]; });
}

extern "C" __global__ void stencil(chunk<2> part, view<const int, 2> in, view<int, 2> out,
                                   char scale, long long shift) {
    for_each_item(part, [&](item<2> it) {
        const size y = it[0], x = it[1];
        const int left = x > 0 ? in(y, x - 1) : 0, right = x + 1 < it.range[1] ? in(y, x + 1) : 0;
        const int up = y > 0 ? in(y - 1, x) : 0, down = y + 1 < it.range[0] ? in(y + 1, x) : 0;
        out[it] = scale * (left + right + up + down) + int(shift);
    });
}

extern "C" __global__ void coordinates(chunk<3> part, view<unsigned long long, 3> out) {
    for_each_item(part, [&](item<3> it) {
        out[it] = (it[0] * it.range[1] + it[1]) * it.range[2] + it[2];
    });
}

// The sum of each group, by a tree in shared memory.
extern "C" __global__ void sums(chunk<1> part, view<const unsigned, 1> in, view<unsigned, 1> out) {
    extern __shared__ unsigned partial[];
    for_each_group(part, [&](group_item<1> it) {
        const unsigned local = unsigned(it.local[0]);
        partial[local] = in[it];
        it.barrier();
        for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
            if (local < half) partial[local] += partial[local + half];
            it.barrier();
        }
        if (local == 0) out[it.group[0]] = partial[0];
    });
}

extern "C" __global__ void shifted(chunk<1> part, view<const int, 1> in, view<int, 1> out) {
    for_each_item(part, [&](item<1> it) { out[it] = in(it[0] + 3); });
}

extern "C" __global__ void number(chunk<2> part, view<unsigned, 2> out) {
    for_each_item(part, [&](item<2> it) { out[it] = unsigned(it[0] * it.range[1] + it[1]); });
}

extern "C" __global__ void hash(chunk<2> part, view<const unsigned, 2> in, view<unsigned, 2> out) {
    for_each_item(part, [&](item<2> it) {
        unsigned sum = 17;
        const size y0 = it[0] > 0 ? it[0] - 1 : 0, x0 = it[1] > 0 ? it[1] - 1 : 0;
        for (size y = y0; y < it[0] + 2 && y < it.range[0]; ++y)
            for (size x = x0; x < it[1] + 2 && x < it.range[1]; ++x)
                sum = (sum ^ in(y, x)) * 16777619u;
        out[it] = sum;
    });
}

extern "C" __global__ void touch(chunk<1>, view<unsigned, 1>) {}

extern "C" __global__ void nothing(chunk<1>) {}

extern "C" __global__ void linger(chunk<1>, unsigned long long nanoseconds) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
}

extern "C" __global__ void fault(chunk<1>) {
    *reinterpret_cast<int*>(16) = 1;
}
"#;

/// Compiles all of it for a few generations of GPUs, with and without checks.
pub(crate) fn compile() -> Outcome {
    for checked in [false, true] {
        let config = NvrtcConfig { checked, ..NvrtcConfig::default() };
        let compiler = Nvrtc::new(&config).map_err(|error| error.to_string())?;
        for capability in [(8, 0), (9, 0), (10, 0)] {
            let code = compiler.compile("suite.cu", SOURCE, capability);
            let bytes = code.map_err(|error| error.to_string())?.len();
            println!("{capability:?}, checked: {checked}: {bytes} bytes");
        }
    }
    Ok(())
}

/// The module of all kernels here.
pub(crate) fn module() -> Arc<CodeModule> {
    CodeModule::new("suite.cu", CodeSource::CudaCpp(SOURCE.into()))
}

pub(crate) fn kernel(
    module: &Arc<CodeModule>,
    entry: &str,
    dims: usize,
    global: Box3,
) -> CudaKernel {
    // SAFETY: the kernels above keep to their parameters and to what the cases
    // declare, but for those that are there to fail.
    unsafe { CudaKernel::new(module, entry, dims, global) }
}

pub(crate) fn ptx(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    let extent = Box3::from_range([1000]);
    let data = node.upload(device_memory(0), extent, &[7_u64; 1000])?;
    node.issue(kernel_lane(0), kernel_job(Increment::new(), extent, &[(data, extent)]));
    node.finish()?;
    expect_equal(&node.download::<u64>(data)?, &[8; 1000])
}

pub(crate) fn one_dimension(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    let (global, chunk) = (Box3::from_range([1 << 20]), Box3::new([1000, 0, 0], [900_000, 1, 1]));
    // Each allocation holds another part of its buffer.
    let (x_extent, y_extent) =
        (Box3::new([500, 0, 0], [1 << 20, 1, 1]), Box3::new([1000, 0, 0], [900_003, 1, 1]));
    let numbers = |extent: Box3, factor: f32| -> Vec<f32> {
        (extent.min()[0]..extent.max()[0]).map(|index| (index % 97) as f32 * factor).collect()
    };
    let (x, mut y) = (numbers(x_extent, 1.0), numbers(y_extent, 0.5));
    let on_device = [
        (node.upload(device_memory(0), x_extent, &x)?, chunk),
        (node.upload(device_memory(0), y_extent, &y)?, chunk),
    ];
    let kernel = kernel(&module(), "axpy", 1, global).with_value(2.0_f32);
    node.issue(kernel_lane(0), kernel_job(Arc::new(kernel), chunk, &on_device));
    node.finish()?;
    for (index, y) in y.iter_mut().enumerate().take(900_000 - 1000) {
        *y += 2.0 * x[index + 500];
    }
    expect_equal(&node.download::<f32>(on_device[1].0)?, &y)
}

pub(crate) fn two_dimensions(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    let (height, width) = (300_usize, 517_usize);
    let global = Box3::from_range([height, width]);
    let input: Vec<i32> = (0..height * width).map(|index| (index * 7919 % 1009) as i32).collect();
    let at = |y: usize, x: usize| {
        let inside = y < height && x < width;
        if inside { input[y * width + x] } else { 0 }
    };
    let around = |y: usize, x: usize| {
        let (up, left) = (y.wrapping_sub(1), x.wrapping_sub(1));
        at(up, x) + at(y + 1, x) + at(y, left) + at(y, x + 1)
    };
    let expected: Vec<i32> =
        (0..height * width).map(|index| 3 * around(index / width, index % width) - 5).collect();
    let source = node.upload(device_memory(0), global, &input)?;
    let target = node.alloc(device_memory(0), global, 4)?;
    let kernel = kernel(&module(), "stencil", 2, global).with_value(3_i8).with_value(-5_i64);
    let kernel = Arc::new(kernel);
    // In two chunks, on the device's two kernel lanes.
    for (lane, rows) in [(0, 0..120), (1, 120..300)] {
        let chunk = Box3::new([rows.start, 0, 0], [rows.end, width as u64, 1]);
        let accesses = [(source, global), (target, chunk)];
        node.issue(kernel_lane(0) + lane, kernel_job(kernel.clone(), chunk, &accesses));
    }
    node.finish()?;
    expect_equal(&node.download::<i32>(target)?, &expected)
}

pub(crate) fn three_dimensions(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    let global = Box3::from_range([13, 29, 65]);
    let target = node.alloc(device_memory(0), global, 8)?;
    let kernel = kernel(&module(), "coordinates", 3, global);
    node.issue(kernel_lane(0), kernel_job(Arc::new(kernel), global, &[(target, global)]));
    node.finish()?;
    let expected: Vec<u64> = (0..global.volume()).collect();
    expect_equal(&node.download::<u64>(target)?, &expected)
}

pub(crate) fn groups(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    let (extent, sums) = (Box3::from_range([128 * 1000]), Box3::from_range([1000]));
    let input: Vec<u32> = (0..128_000).map(|index| index * 31 % 65_537).collect();
    let expected: Vec<u32> = input.chunks(128).map(|group| group.iter().sum()).collect();
    let source = node.upload(device_memory(0), extent, &input)?;
    let target = node.alloc(device_memory(0), sums, 4)?;
    let kernel = kernel(&module(), "sums", 1, extent).with_groups(&[128]).with_shared_bytes(512);
    let accesses = [(source, extent), (target, sums)];
    node.issue(kernel_lane(0), kernel_job(Arc::new(kernel), extent, &accesses));
    node.finish()?;
    expect_equal(&node.download::<u32>(target)?, &expected)
}

pub(crate) fn lanes_keep_order(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    let extent = Box3::from_range([64]);
    let data = [0, 1].map(|_| node.alloc(device_memory(0), extent, 8));
    let kernel = Increment::new();
    for step in 0..4000_u16 {
        let data = data[usize::from(step % 2)].clone()?;
        node.issue(
            kernel_lane(0) + step % 2,
            kernel_job(kernel.clone(), extent, &[(data, extent)]),
        );
    }
    node.finish()?;
    for data in data {
        expect_equal(&node.download::<u64>(data?)?, &[2000; 64])?;
    }
    Ok(())
}

pub(crate) fn memory_is_zeroed_again(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    let extent = Box3::from_range([1 << 16]);
    for memory in [device_memory(0), celerity_idag::MemoryId::HOST] {
        let used = node.upload(memory, extent, &vec![9_u64; 1 << 16])?;
        node.free(used);
        let again = node.alloc(memory, extent, 8)?;
        expect_equal(&node.download::<u64>(again)?, &vec![0; 1 << 16])?;
        node.free(again);
    }
    Ok(())
}
