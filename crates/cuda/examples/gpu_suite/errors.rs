//! What is said when something goes wrong.

use std::sync::Arc;

use celerity_cuda::{CodeError, CudaConfig, Gpu};
use celerity_executor::{CodeModule, CodeSource};
use celerity_regions::Box3;

use crate::kernels::{Increment, kernel, module};
use crate::node::{Node, device_memory, kernel_job, kernel_lane};
use crate::{Outcome, Suite};

fn expect(said: &str, part: &str) -> Outcome {
    println!("  {}", said.lines().next().unwrap_or_default());
    if said.contains(part) { Ok(()) } else { Err(format!("`{part}` is not in `{said}`")) }
}

pub(crate) fn code(suite: &Suite) -> Outcome {
    let gpus = [Gpu::from_slot(0)];
    let check = |kernel: &dyn celerity_executor::DeviceCode, accesses| {
        suite.gpus.check(&gpus, kernel, accesses)
    };
    let (good, one) = (module(), Box3::from_range([1]));
    check(&kernel(&good, "coordinates", 3, one), 1).map_err(|error| error.to_string())?;
    check(&*Increment::new(), 1).map_err(|error| error.to_string())?;
    let error = check(&kernel(&good, "coordinates", 3, one), 2).expect_err("too many accesses");
    expect(&error.to_string(), "bytes of parameters")?;
    let error = check(&kernel(&good, "absent", 1, one), 0).expect_err("no such kernel");
    expect(&error.to_string(), "no kernel `absent`")?;
    let wrong = CodeModule::new("wrong.cu", CodeSource::CudaCpp("__global__ void f( {}".into()));
    let error = check(&kernel(&wrong, "f", 1, one), 0).expect_err("it is no C++");
    expect(&error.to_string(), "wrong.cu(1)")?;
    let wrong = CodeModule::new("wrong.ptx", CodeSource::Ptx(".version 7.0\nrubbish".into()));
    let error = check(&kernel(&wrong, "f", 1, one), 0).expect_err("it is no assembly");
    match &error {
        CodeError::Load { .. } => expect(&error.to_string(), "Missing .target"),
        other => Err(other.to_string()),
    }
}

pub(crate) fn out_of_memory(suite: &Suite) -> Outcome {
    let mut node = Node::default(&suite.gpus, 1)?;
    let half = suite.gpus.infos()[0].memory / 2;
    let extent = |bytes: u64| Box3::new([0; 3], [bytes / 8, 1, 1]);
    let first = node.alloc(device_memory(0), extent(half), 8)?;
    let said = match node.alloc(device_memory(0), extent(half), 8) {
        Ok(_) => return Err("there is more memory than there is".to_owned()),
        Err(said) => said,
    };
    expect(&said, &format!("{half} bytes are resident"))?;
    node.free(first);
    let second = node.alloc(device_memory(0), extent(half), 8)?;
    node.free(second);
    Ok(())
}

pub(crate) fn out_of_bounds(suite: &Suite) -> Outcome {
    let extent = Box3::from_range([100]);
    let chunk = Box3::new([10, 0, 0], [20, 1, 1]);
    let run = |gpus, declared| {
        let mut node = Node::default(gpus, 1)?;
        let data = [0, 1].map(|_| node.alloc(device_memory(0), extent, 4));
        let [source, target] = data;
        let kernel = Arc::new(kernel(&module(), "shifted", 1, extent));
        let accesses = [(source?, declared), (target?, chunk)];
        node.issue(kernel_lane(0), kernel_job(kernel, chunk, &accesses));
        node.finish()
    };
    let enough = Box3::new([13, 0, 0], [23, 1, 1]);
    run(&suite.checked, enough)?;
    let said = run(&suite.checked, chunk).expect_err("three elements are not declared");
    expect(&said, "3 times through access 0, in [20,0,0]..[23,1,1]")?;
    run(&suite.checked, enough).map_err(|said| format!("the record was not emptied: {said}"))?;
    run(&suite.gpus, chunk)
}

pub(crate) fn fault(suite: &Suite) -> Outcome {
    let config = CudaConfig { batch: 1, ..CudaConfig::default() };
    let mut node = Node::new(&suite.gpus, 1, &config)?;
    let one = Box3::from_range([1]);
    let kernel = Arc::new(kernel(&module(), "fault", 1, one));
    node.issue(kernel_lane(0), kernel_job(kernel, one, &[]));
    let said = node.finish().expect_err("the address is nobody's");
    expect(&said, "CUDA_ERROR_ILLEGAL_ADDRESS")
}
