//! Just enough of Rust's lexical grammar to tell code from comments and literals.
//!
//! A rule that searched raw text would trip over the sentence that explains it. Comments vanish,
//! literals become opaque, and what is left is identifiers and punctuation with their lines.

/// One piece of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) line: usize,
    pub(super) kind: TokenKind,
}

/// What a token is, as far as the rules care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Ident(String),
    Punct(char),
    /// A string, character or number; its content is nobody's business.
    Literal,
}

impl Token {
    pub(super) fn ident(&self) -> Option<&str> {
        match &self.kind {
            TokenKind::Ident(name) => Some(name),
            TokenKind::Punct(_) | TokenKind::Literal => None,
        }
    }

    pub(super) fn is(&self, punct: char) -> bool {
        self.kind == TokenKind::Punct(punct)
    }
}

/// The code of a source text. Never fails: an unterminated literal or comment ends with the text.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        rest: text.chars().collect(),
        at: 0,
        line: 1,
    };
    let mut tokens = Vec::new();
    while let Some(next) = lexer.peek(0) {
        let line = lexer.line;
        if let Some(kind) = lexer.token(next) {
            tokens.push(Token { line, kind });
        }
    }
    tokens
}

struct Lexer {
    rest: Vec<char>,
    at: usize,
    line: usize,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek(0)?;
        self.at += 1;
        self.line += usize::from(next == '\n');
        Some(next)
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.bump();
        }
    }

    /// Consumes at least one character; `None` for white space and comments.
    fn token(&mut self, next: char) -> Option<TokenKind> {
        match next {
            '/' if self.peek(1) == Some('/') => {
                self.line_comment();
                None
            }
            '/' if self.peek(1) == Some('*') => {
                self.block_comment();
                None
            }
            '"' => Some(self.string()),
            '\'' => self.quote(),
            _ if next.is_ascii_digit() => Some(self.number()),
            _ if starts_name(next) => Some(self.name_or_prefixed_literal()),
            _ if next.is_whitespace() => {
                self.bump();
                None
            }
            _ => {
                self.bump();
                Some(TokenKind::Punct(next))
            }
        }
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|next| next != '\n') {
            self.bump();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => {
                    depth += 1;
                    self.skip(2);
                }
                (Some('*'), Some('/')) => {
                    depth -= 1;
                    self.skip(2);
                }
                (Some(_), _) => self.skip(1),
                (None, _) => return,
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) -> TokenKind {
        self.bump();
        while let Some(next) = self.bump() {
            match next {
                '\\' => self.skip(1),
                '"' => break,
                _ => {}
            }
        }
        TokenKind::Literal
    }

    fn raw_string(&mut self, hashes: usize) -> TokenKind {
        self.skip(hashes + 1);
        while let Some(next) = self.bump() {
            if next == '"' && (0..hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                self.skip(hashes);
                break;
            }
        }
        TokenKind::Literal
    }

    /// A character literal, or a lifetime, which is no token of interest.
    fn quote(&mut self) -> Option<TokenKind> {
        let escaped = self.peek(1) == Some('\\');
        if !escaped && self.peek(2) != Some('\'') {
            self.skip(1);
            while self.peek(0).is_some_and(continues_name) {
                self.bump();
            }
            return None;
        }
        self.skip(if escaped { 3 } else { 2 });
        while let Some(next) = self.bump() {
            if next == '\'' {
                break;
            }
        }
        Some(TokenKind::Literal)
    }

    fn number(&mut self) -> TokenKind {
        while self.peek(0).is_some_and(continues_name) {
            self.bump();
        }
        TokenKind::Literal
    }

    fn name_or_prefixed_literal(&mut self) -> TokenKind {
        let mut name = String::new();
        while let Some(next) = self.peek(0).filter(|next| continues_name(*next)) {
            name.push(next);
            self.bump();
        }
        let hashes = (0..)
            .take_while(|ahead| self.peek(*ahead) == Some('#'))
            .count();
        let quote = self.peek(hashes);
        match (name.as_str(), quote) {
            ("r" | "br" | "cr", Some('"')) => self.raw_string(hashes),
            ("b" | "c", Some('"')) if hashes == 0 => self.string(),
            ("b", Some('\'')) if hashes == 0 => self.quote().unwrap_or(TokenKind::Literal),
            ("r", Some(next)) if hashes == 1 && starts_name(next) => {
                self.skip(1);
                self.name_or_prefixed_literal()
            }
            _ => TokenKind::Ident(name),
        }
    }
}

fn starts_name(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn continues_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        tokens(text)
            .iter()
            .filter_map(|token| token.ident().map(str::to_owned))
            .collect()
    }

    #[test]
    fn comments_and_literals_hold_no_names() {
        let text = r####"
            // Instant in a comment
            /* Instant /* nested Instant */ still Instant */
            let a = "Instant \" Instant";
            let b = r#"Instant " Instant"#;
            let c = b"Instant"; let d = br##"Instant"# Instant"##;
            let e = 'I'; let f = '\''; let g = b'\\'; let h = '"';
            fn i<'Instant>(x: &'Instant str) {}
        "####;
        assert!(
            !names(text).contains(&"Instant".to_owned()),
            "{:?}",
            names(text)
        );
        assert!(names(text).contains(&"x".to_owned()));
    }

    #[test]
    fn code_after_a_literal_is_still_code() {
        assert_eq!(
            names(r##"f("a"); g('b'); h(r#"c"#); r#type"##),
            ["f", "g", "h", "type"]
        );
    }

    #[test]
    fn lines_are_counted_through_everything() {
        let text = "/* a\nb */\n\"c\nd\"\nend";
        let end = tokens(text).into_iter().next_back();
        assert_eq!(
            end,
            Some(Token {
                line: 5,
                kind: TokenKind::Ident("end".to_owned())
            })
        );
    }

    #[test]
    fn broken_text_ends_with_the_text() {
        for text in ["\"open", "/* open", "r#\"open", "'", "'\\", "b'", "r#"] {
            tokens(text);
        }
    }
}
