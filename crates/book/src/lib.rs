#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

/// The chapters, so that their programs are compiled and run.
#[cfg(doctest)]
mod chapters {
    #[doc = include_str!("../../../docs/book/fifteen-minutes.md")]
    mod fifteen_minutes {}
    #[doc = include_str!("../../../docs/book/chunks-and-mappers.md")]
    mod chunks_and_mappers {}
    #[doc = include_str!("../../../docs/book/pitfalls.md")]
    mod pitfalls {}
    #[doc = include_str!("../../../docs/book/coming-from.md")]
    mod coming_from {}
    #[doc = include_str!("../../../docs/book/reuse.md")]
    mod reuse {}
    #[doc = include_str!("../../../docs/book/inside.md")]
    mod inside {}
    #[doc = include_str!("../../../docs/book/several-nodes.md")]
    mod several_nodes {}
    #[doc = include_str!("../../../docs/book/errors.md")]
    mod errors {}
    #[doc = include_str!("../../../docs/book/testing.md")]
    mod testing {}
}
