//! Texts: many short texts, end to end.
//!
//! They lie in chunks of four megabytes, so that millions of them grow without being copied. No text lies in
//! two chunks; one that is longer than a chunk has a longer chunk to itself.

const CHUNK_BITS: u32 = 22;
const CHUNK: usize = 1 << CHUNK_BITS;

#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    chunks: Vec<String>,
}

/// Where a text lies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    /// The chunk, then the place in it.
    start: u32,
    length: u32,
}

impl Span {
    pub(crate) fn length(self) -> usize {
        self.length as usize
    }
}

impl Texts {
    pub(crate) fn push(&mut self, text: &str) -> Span {
        // A text never begins at the very end: that place has the number of the next chunk's first.
        let fits = |last: &String| last.len() + text.len() < CHUNK;
        if !self.chunks.last().is_some_and(fits) {
            // The first grows with what is in it: most lists of texts are short.
            let room = if self.chunks.is_empty() {
                0
            } else {
                CHUNK.max(text.len())
            };
            self.chunks.push(String::with_capacity(room));
        }
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let span = Span {
            start: ((number << CHUNK_BITS) + chunk.len()) as u32,
            length: text.len() as u32,
        };
        chunk.push_str(text);
        span
    }

    pub(crate) fn bytes(&self, span: Span) -> &[u8] {
        let chunk = (span.start >> CHUNK_BITS) as usize;
        let start = span.start as usize % CHUNK;
        &self.chunks[chunk].as_bytes()[start..start + span.length()]
    }

    pub(crate) fn get(&self, span: Span) -> &str {
        let chunk = (span.start >> CHUNK_BITS) as usize;
        let start = span.start as usize % CHUNK;
        &self.chunks[chunk][start..start + span.length()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_come_out_as_they_went_in() {
        let mut texts = Texts::default();
        let lengths = [
            0,
            1,
            CHUNK - 1,
            0,
            2,
            CHUNK,
            0,
            CHUNK + 1,
            3,
            CHUNK / 2,
            CHUNK / 2,
            7,
        ];
        let spans: Vec<(Span, String)> = lengths
            .into_iter()
            .zip('a'..)
            .map(|(length, letter)| letter.to_string().repeat(length))
            .map(|text| (texts.push(&text), text))
            .collect();
        for (span, text) in spans {
            assert!(texts.get(span) == text, "a text of {} bytes", text.len());
            assert!(texts.bytes(span) == text.as_bytes(), "{} bytes", text.len());
        }
        let room: usize = texts.chunks.iter().map(String::capacity).sum();
        assert!(room <= 9 * CHUNK, "{room} bytes of room");
    }
}
