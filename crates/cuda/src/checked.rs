//! What kernels record that check their indices: which elements they touched
//! that their task does not declare (instruction-graph preprint, §4.4). The layout is that of
//! `celerity.cuh`.
#![allow(unsafe_code)]

use std::fmt;

use celerity_tdag::Count;

use crate::driver::{AddressSpace, Driver, DriverError, Stream, Transfer};

/// A record on a GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessRecord {
    address: u64,
    bytes: u64,
}

/// 64-bit words per access: how often, the least index as its complement, so
/// that zeroes stand for none, and the greatest index.
const WORDS: usize = 7;

impl AccessRecord {
    /// What a module that checks calls its record.
    pub(crate) const VARIABLE: &'static str = "celerity_out_of_bounds";

    pub(crate) fn new(address: u64, bytes: u64) -> Self {
        Self { address, bytes }
    }

    /// Waits for the stream, reads the record, and empties it if there is
    /// something in it.
    pub(crate) fn take(
        self,
        driver: &dyn Driver,
        stream: Stream,
    ) -> Result<Option<Astray>, DriverError> {
        let mut words = vec![0_u64; usize::try_from(self.bytes / 8).expect("a small variable")];
        let source = (AddressSpace::Gpu(stream.gpu), self.address);
        let target = (AddressSpace::Host, words.as_mut_ptr().expose_provenance() as u64);
        let transfer = Transfer::flat(source, target, self.bytes);
        // SAFETY: the module's variable is there as long as the module; `words`
        // is as large, and lives until the stream has run empty.
        let copied = unsafe { driver.copy(stream, &transfer) };
        driver.synchronize(stream)?;
        copied?;
        let astray = Astray::of(&words);
        if astray.is_some() {
            // SAFETY: the variable is there, and no kernel of this module runs.
            unsafe { driver.zero(stream, self.address, self.bytes)? };
        }
        Ok(astray)
    }
}

/// The first access that went astray.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Astray {
    access: usize,
    count: u64,
    min: [u64; 3],
    /// Exclusive.
    max: [u64; 3],
}

impl Astray {
    fn of(words: &[u64]) -> Option<Self> {
        let (access, record) =
            words.chunks_exact(WORDS).enumerate().find(|(_, record)| record[0] > 0)?;
        Some(Self {
            access,
            count: record[0],
            min: std::array::from_fn(|dim| !record[1 + dim])
                .map(|min| if min == u64::MAX { 0 } else { min }),
            max: std::array::from_fn(|dim| record[4 + dim].saturating_add(1)),
        })
    }
}

impl fmt::Display for Astray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { access, count, min, max } = self;
        let list = |of: &[u64; 3]| of.map(|side| side.to_string()).join(",");
        write!(
            f,
            "touched elements that its task does not declare: {} through access {access}, in \
             [{}]..[{}]",
            Count(*count, "time"),
            list(min),
            list(max)
        )
    }
}
