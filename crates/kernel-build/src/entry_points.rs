//! Where entry points stand in assembly, and what takes their place. Knows nothing of what is in them.

/// What they begin with, and end with.
const START: &str = ".visible .entry ";
const END: &str = "\n}";

/// An entry point, from its directive to its last brace.
#[derive(Clone, Copy)]
pub(crate) struct EntryText<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

/// Those of a module, in order.
pub(crate) fn entry_points(ptx: &str) -> impl Iterator<Item = EntryText<'_>> {
    ptx.match_indices(START).map(|(start, _)| {
        let from = &ptx[start..];
        let text = &from[..from.find(END).map_or(from.len(), |end| end + END.len())];
        let name = &text[START.len()..];
        EntryText { name: name.split(['(', '\n']).next().unwrap_or(name), text }
    })
}

/// `ptx`, in which `put` appends what takes the place of each entry point.
pub(crate) fn rewritten(ptx: &str, mut put: impl FnMut(&mut String, EntryText<'_>)) -> String {
    let (mut text, mut rest) = (String::with_capacity(ptx.len()), ptx);
    for entry in entry_points(ptx) {
        let Some((before, behind)) = rest.split_once(entry.text) else { continue };
        text.push_str(before);
        put(&mut text, entry);
        rest = behind;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\
.func f(
)
{
}
.visible .entry a(
)
{
\tret;
}
.global .b8 table[1];
.visible .entry b$narrow(
)
{
}
";

    #[test]
    fn entry_points_go_from_their_directives_to_their_braces() {
        let [a, b] = entry_points(PTX).collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!((a.name, a.text), ("a", ".visible .entry a(\n)\n{\n\tret;\n}"));
        assert_eq!((b.name, b.text), ("b$narrow", ".visible .entry b$narrow(\n)\n{\n}"));
        assert_eq!(entry_points("").count(), 0);
    }

    #[test]
    fn what_is_around_them_stays() {
        assert_eq!(rewritten(PTX, |text, entry| text.push_str(entry.text)), PTX);
        let names = rewritten(PTX, |text, entry| text.push_str(entry.name));
        assert_eq!(names, ".func f(\n)\n{\n}\na\n.global .b8 table[1];\nb$narrow\n");
    }
}
