//! Randomness that can be drawn again (splitmix64).

#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.next() % count.max(1)
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// Any text, from control characters to the far planes.
    pub(crate) fn text(&mut self, most: u64) -> String {
        let length = self.below(most + 1);
        (0..length)
            .map(|_| match self.below(4) {
                0 => char::from(self.below(32) as u8),
                1 => char::from(32 + self.below(95) as u8),
                2 => char::from_u32(0x00a1 + self.below(0x2000) as u32).unwrap_or('ß'),
                _ => char::from_u32(0x1_f300 + self.below(0x200) as u32).unwrap_or('🚀'),
            })
            .collect()
    }
}
