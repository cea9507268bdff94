//! One case: its name, and what is counted.

/// One case.
pub(crate) struct Case {
    /// `GROUP/PROGRAM`; no two are equal.
    pub(crate) name: String,
    /// Makes what is needed before anything is counted; what it returns is run twice, and
    /// the second time is counted.
    pub(crate) start: Box<dyn Fn() -> Box<dyn FnMut()>>,
}

impl Case {
    pub(crate) fn new<W: FnMut() + 'static>(name: String, start: impl Fn() -> W + 'static) -> Self {
        Self { name, start: Box::new(move || Box::new(start())) }
    }
}
