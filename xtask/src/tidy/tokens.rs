//! Rust's text as words and signs, without comments, texts and characters. Knows no grammar.

/// A piece of Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// An identifier, keyword or number.
    Word(&'t str),
    /// `::`
    Colons,
    /// Any other sign.
    Sign(char),
}

/// All of `text`, in order.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let (mut rest, mut found) = (text, Vec::new());
    while let Some(first) = rest.chars().next() {
        let skipped = skipped(rest);
        let length = if skipped > 0 {
            skipped
        } else if is_part_of_word(first) {
            let length = rest.find(|c| !is_part_of_word(c)).unwrap_or(rest.len());
            found.push(Token::Word(&rest[..length]));
            length
        } else if rest.starts_with("::") {
            found.push(Token::Colons);
            2
        } else {
            found.push(Token::Sign(first));
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    found
}

fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Bytes at the beginning that mean nothing here; 0 if there are none.
fn skipped(rest: &str) -> usize {
    let until = |end: &str, from: usize| {
        rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len())
    };
    let bytes = rest.as_bytes();
    match bytes[0] {
        b'/' if rest.starts_with("//") => until("\n", 0),
        b'/' if rest.starts_with("/*") => until("*/", 2),
        b'"' => text_literal(bytes),
        b'r' if rest.starts_with("r\"") => until("\"", 2),
        b'r' if rest.starts_with("r#\"") => until("\"#", 3),
        b'\'' => character(rest),
        white if white.is_ascii_whitespace() => 1,
        _ => 0,
    }
}

fn text_literal(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// A character, or the sign alone before the name of a lifetime.
fn character(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((escaped, _))) => {
            rest[escaped + 1..].find('\'').map_or(rest.len(), |at| escaped + 1 + at + 1)
        }
        (Some(_), Some((end, '\''))) => end + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::{Token, tokens};

    #[test]
    fn what_is_no_code_is_left_out() {
        let text = r##"a::b /* c::d */ // e::f
            "g::h \" i" r#"j"k"# 'l' '\'' '\u{1F600}' &'m n"##;
        let words: Vec<_> = tokens(text)
            .into_iter()
            .filter_map(|token| if let Token::Word(word) = token { Some(word) } else { None })
            .collect();
        assert_eq!(words, ["a", "b", "m", "n"]);
        assert_eq!(tokens("a::*")[1..], [Token::Colons, Token::Sign('*')]);
    }
}
