//! Numbers that cannot work, and paths that are no text.

use std::time::Duration;

use celerity::prelude::*;
use celerity::{Error, RunError};

use crate::process::said_into;
use crate::{assert_says, run_error};

#[test]
fn what_cannot_work_is_refused_with_what_can() {
    let usual = Config::default;
    for (config, parts) in [
        (usual().nodes(20_000), ["20000 nodes in one process", "1024 at most", "launcher"]),
        (usual().nodes(1025), ["1025 nodes in one process", "1024 at most", "launcher"]),
        (usual().nodes(usize::MAX), ["`nodes` is", "1 to 1048576", ""]),
        (usual().devices(100), ["`devices` is 100", "1 to 61", ""]),
        (usual().run_ahead(usize::MAX), ["`run_ahead` is", "1 to 1048576", ""]),
        (usual().horizon_step(u64::MAX), ["`horizon_step` is", "1 to 1048576", ""]),
        (usual().horizon_max_parallelism(1 << 40), ["`horizon_max_par", "1 to 1048576", ""]),
    ] {
        let error = config.run(|_| -> celerity::Result<()> { panic!("it starts") }).unwrap_err();
        assert!(matches!(run_error(&error), RunError::Start { .. }), "{error}");
        assert_says(&error.to_string(), &parts);
    }
}

#[test]
fn as_much_as_is_allowed_works() {
    for config in [
        Config::default().nodes(300),
        Config::default().nodes(2).devices(61),
        Config::default().nodes(2).run_ahead(1 << 20).horizon_step(1 << 20),
        Config::default().watchdog(Duration::MAX).peer_timeout(Duration::MAX),
    ] {
        let values = config.run(|queue| {
            let a = queue.buffer::<u32, 1>(1000);
            for _ in 0..20 {
                queue.task("step").parallel_for(1000, a.write(one_to_one()), |item, a| {
                    *a = item[0] as u32;
                })?;
            }
            Ok(queue.fence(&a)?.wait()?.into_vec())
        });
        assert_eq!(values.unwrap(), (0..1000).collect::<Vec<_>>());
    }
}

#[test]
fn chunks_beyond_number_are_refused() {
    for chunks in [0, 1025, usize::MAX] {
        let error = Config::default().devices(2).run(|queue| {
            let task = queue.task("many").hint(celerity::Hint::Oversubscribe(chunks));
            task.parallel_for(64, (), |_, ()| ())
        });
        assert!(matches!(error, Err(Error::Oversubscription { .. })), "{chunks}");
    }
    let most = Config::default().nodes(2).devices(3).run(|queue| {
        let a = queue.buffer::<u32, 1>(8000);
        let task = queue.task("many").hint(celerity::Hint::Oversubscribe(1024));
        task.parallel_for(8000, a.write(one_to_one()), |_, a| *a = 1)?;
        Ok(queue.fence(&a)?.wait()?.as_slice().iter().sum::<u32>())
    });
    assert_eq!(most.unwrap(), 8000);
}

#[test]
#[cfg(unix)]
fn a_trace_is_written_to_the_very_path_that_the_environment_names() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = std::env::temp_dir().join(format!("celerity-faults-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let name = OsStr::from_bytes(b"trace-\xff\xfe .json ");
    let path = folder.join(name);
    let nodes = OsStr::new("2");
    let variables = [("CELERITY_TRACE", path.as_os_str()), ("CELERITY_NODES", nodes)];
    let config = Config::from_variables(variables).unwrap();
    config.run(|queue| queue.barrier()).unwrap();
    let found: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
    let found: Vec<_> = found.iter().map(std::fs::DirEntry::file_name).collect();
    assert_eq!(found, [name]);
    assert!(std::fs::metadata(&path).unwrap().len() > 0);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// What prints: a log, a warning of a node that waits, and all graphs.
fn talkative() {
    let variables =
        [("CELERITY_LOG_LEVEL", "trace"), ("CELERITY_NODES", "2"), ("CELERITY_PRINT_GRAPHS", "on")];
    let config = Config::from_variables(variables).unwrap().watchdog(Duration::from_millis(1));
    let outcome = config.run(|queue| {
        let slow = |_, ()| std::thread::sleep(Duration::from_millis(50));
        queue.task("slow").parallel_for(1, (), slow)?;
        queue.barrier()
    });
    outcome.unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn standard_error_that_takes_nothing_fails_nobody() {
    let test = "limits::standard_error_that_takes_nothing_fails_nobody";
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("Linux");
    assert!(said_into(test, full().into(), talkative).is_none_or(|status| status.success()));
}
