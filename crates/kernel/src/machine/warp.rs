//! Exchanges within a warp.

use core::arch::asm;

/// What the thread at position `lane` of the warp passes for `bits`. All threads of
/// `mask` must come here together.
#[inline(always)]
pub(crate) fn shuffle(bits: u32, lane: u32, mask: u32) -> u32 {
    let theirs: u32;
    // SAFETY: exchanges registers; threads that have ended are not waited for.
    unsafe {
        asm!(
            "shfl.sync.idx.b32 {theirs}, {bits}, {lane}, 31, {mask};",
            theirs = out(reg32) theirs,
            bits = in(reg32) bits,
            lane = in(reg32) lane,
            mask = in(reg32) mask,
            options(nostack, preserves_flags),
        );
    }
    theirs
}

/// The lanes, as bits, of the threads that pass `true`. All threads of `mask` must come
/// here together.
#[inline(always)]
pub(crate) fn ballot(vote: bool, mask: u32) -> u32 {
    let votes: u32;
    // SAFETY: as above.
    unsafe {
        asm!(
            "{{",
            ".reg .pred vote;",
            "setp.ne.u32 vote, {vote}, 0;",
            "vote.sync.ballot.b32 {votes}, vote, {mask};",
            "}}",
            votes = out(reg32) votes,
            vote = in(reg32) u32::from(vote),
            mask = in(reg32) mask,
            options(nostack, preserves_flags),
        );
    }
    votes
}
