//! What is said of work that cannot be done here: the line that `.ci/run` looks for, if it may be left out.

/// The line that tells why `work` is not done; with `SKIPPED` if it may be left out.
pub(crate) fn line(work: &str, may_skip: bool, reason: &str) -> String {
    let prefix = if may_skip { format!("SKIPPED {work}: ") } else { String::new() };
    prefix + reason
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn only_what_may_be_left_out_is_skipped() {
        assert_eq!(line("work", true, "no tool"), "SKIPPED work: no tool");
        assert_eq!(line("work", false, "no tool"), "no tool");
    }
}
