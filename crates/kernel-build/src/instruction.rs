//! How instructions are written in assembly.

/// An instruction's name, and what follows it.
pub(crate) fn split(instruction: &str) -> Option<(&str, &str)> {
    let (operation, operands) = instruction.split_once([' ', '\t'])?;
    Some((operation, operands.trim_start()))
}
