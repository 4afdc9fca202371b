//! Lexer: a template's text as pieces, with the spaces that markers take away gone.

use super::TemplateRefused;

/// A piece inside of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A name: a function, a keyword, `true`.
    Name(String),
    /// `.Name` directly after something, or alone: the names without their dots; empty for the dot itself.
    Fields(Vec<String>),
    /// `$name`, empty for `$`, and the fields directly behind it.
    Variable(String, Vec<String>),
    /// A literal text.
    Text(String),
    /// A literal number.
    Integer(i64),
    /// `|`
    Pipe,
    /// `(`
    Open,
    /// `)`, and the fields directly behind it.
    Close(Vec<String>),
    /// `:=`
    Declare,
    /// `=`
    Assign,
    /// `,`
    Comma,
}

/// Text that is copied, or an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Text(String),
    Action { line: usize, words: Vec<Word> },
}

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, TemplateRefused> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut is_trimmed = false;
    loop {
        let line = 1 + text[..text.len() - rest.len()].matches('\n').count();
        let Some(at) = rest.find("{{") else {
            let text = if is_trimmed {
                rest.trim_start_matches(SPACE)
            } else {
                rest
            };
            tokens.push(Token::Text(text.to_owned()));
            return Ok(tokens);
        };
        let line = line + rest[..at].matches('\n').count();
        let refused = |problem: &str| TemplateRefused {
            line,
            problem: problem.to_owned(),
        };
        let mut copied = &rest[..at];
        if is_trimmed {
            copied = copied.trim_start_matches(SPACE);
        }
        let mut inside = &rest[at + 2..];
        if inside.starts_with('-') && inside[1..].starts_with(SPACE) {
            inside = &inside[1..];
            copied = copied.trim_end_matches(SPACE);
        }
        tokens.push(Token::Text(copied.to_owned()));
        let start = inside.trim_start_matches(SPACE);
        if let Some(comment) = start.strip_prefix("/*") {
            let end = comment
                .find("*/")
                .ok_or_else(|| refused("a comment is not closed"))?;
            let after = comment[end + 2..].trim_start_matches(SPACE);
            let (after, trims) = match after.strip_prefix('-') {
                Some(after) => (after, true),
                None => (after, false),
            };
            is_trimmed = trims;
            rest = after
                .strip_prefix("}}")
                .ok_or_else(|| refused("a comment shares its action"))?;
            continue;
        }
        let mut action = Action {
            rest: inside,
            words: Vec::new(),
        };
        let trims = action.read().map_err(|problem| refused(&problem))?;
        is_trimmed = trims;
        rest = action.rest;
        let words = action.words;
        tokens.push(Token::Action { line, words });
    }
}

struct Action<'a> {
    rest: &'a str,
    words: Vec<Word>,
}

impl<'a> Action<'a> {
    /// Reads up to the end of the action; whether it takes the spaces behind it away.
    fn read(&mut self) -> Result<bool, String> {
        loop {
            let spaced = self.rest.trim_start_matches(SPACE);
            let is_spaced = spaced.len() < self.rest.len();
            self.rest = spaced;
            if let Some(rest) = self.rest.strip_prefix("}}") {
                self.rest = rest;
                return Ok(false);
            }
            if let Some(rest) = self.rest.strip_prefix("-}}").filter(|_| is_spaced) {
                self.rest = rest;
                return Ok(true);
            }
            let word = self.word()?;
            self.words.push(word);
        }
    }

    fn word(&mut self) -> Result<Word, String> {
        let first = self.rest.chars().next().ok_or("an action is not closed")?;
        let after = &self.rest[first.len_utf8()..];
        let mut simple = |word| {
            self.rest = after;
            Ok(word)
        };
        match first {
            '|' => simple(Word::Pipe),
            '(' => simple(Word::Open),
            ',' => simple(Word::Comma),
            '=' => simple(Word::Assign),
            ')' => {
                self.rest = after;
                Ok(Word::Close(self.fields()?))
            }
            ':' => {
                self.rest = after.strip_prefix('=').ok_or("a colon without =")?;
                Ok(Word::Declare)
            }
            '.' => {
                let fields = self.fields()?;
                if fields.is_empty() {
                    self.rest = after;
                }
                Ok(Word::Fields(fields))
            }
            '$' => {
                self.rest = after;
                let name = self.name().to_owned();
                Ok(Word::Variable(name, self.fields()?))
            }
            '"' => self.quoted(),
            '`' => {
                let end = after.find('`').ok_or("a text is not closed")?;
                self.rest = &after[end + 1..];
                Ok(Word::Text(after[..end].to_owned()))
            }
            '\'' => self.letter(after),
            '0'..='9' | '-' | '+' => self.integer(),
            c if c.is_alphabetic() || c == '_' => Ok(Word::Name(self.name().to_owned())),
            other => Err(format!("{other:?} is not expected here")),
        }
    }

    /// `.A.B` where it stands; nothing if no field begins here.
    fn fields(&mut self) -> Result<Vec<String>, String> {
        let mut fields = Vec::new();
        while let Some(rest) = self.rest.strip_prefix('.') {
            let before = std::mem::replace(&mut self.rest, rest);
            let name = self.name();
            if name.is_empty() {
                self.rest = before;
                break;
            }
            fields.push(name.to_owned());
        }
        Ok(fields)
    }

    fn name(&mut self) -> &'a str {
        let fits = |c: char| c.is_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !fits(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        name
    }

    fn integer(&mut self) -> Result<Word, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
        let end = self.rest.find(|c| !fits(c)).unwrap_or(self.rest.len());
        // A minus in front of the end marker belongs to the marker, which has a space before it.
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        let number = text
            .parse()
            .map_err(|_| format!("{text} is not an integer"))?;
        Ok(Word::Integer(number))
    }

    fn letter(&mut self, after: &'a str) -> Result<Word, String> {
        let mut letters = after.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), Some('\'')) if letter != '\\' => {
                self.rest = letters.as_str();
                Ok(Word::Integer(u32::from(letter).into()))
            }
            _ => Err("a letter is not closed".to_owned()),
        }
    }

    fn quoted(&mut self) -> Result<Word, String> {
        let mut text = String::new();
        let mut letters = self.rest[1..].chars();
        loop {
            match letters.next() {
                None | Some('\n') => return Err("a text is not closed".to_owned()),
                Some('"') => break,
                Some('\\') => text.push(escape(&mut letters)?),
                Some(letter) => text.push(letter),
            }
        }
        self.rest = letters.as_str();
        Ok(Word::Text(text))
    }
}

fn escape(letters: &mut std::str::Chars<'_>) -> Result<char, String> {
    match letters.next() {
        None => Err("a text is not closed".to_owned()),
        Some('n') => Ok('\n'),
        Some('t') => Ok('\t'),
        Some('r') => Ok('\r'),
        Some(same @ ('\\' | '"' | '\'')) => Ok(same),
        Some('x') => hexadecimal(letters, 2),
        Some('u') => hexadecimal(letters, 4),
        Some('U') => hexadecimal(letters, 8),
        Some(other) => Err(format!("\\{other} is not an escape")),
    }
}

fn hexadecimal(letters: &mut std::str::Chars<'_>, digits: u32) -> Result<char, String> {
    let mut sum = 0_u32;
    for _ in 0..digits {
        let digit = letters.next().and_then(|letter| letter.to_digit(16));
        sum = sum.wrapping_mul(16) + digit.ok_or("an escape lacks digits")?;
    }
    char::from_u32(sum).ok_or_else(|| "an escape is no letter".to_owned())
}
