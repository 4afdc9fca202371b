//! Problems: everything that is wrong with a file, each with its place, its value and its rule.

use std::fmt;

/// How many problems are listed; of a file with more, the rest is counted.
pub const MAX_PROBLEMS: usize = 10_000;

/// Which part of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FilePart {
    /// The file as a whole.
    File,
    /// A machine, by position and by the id it claims to have.
    Machine {
        /// Its position in `machines`.
        at: usize,
        /// Its id, made fit to print.
        id: String,
    },
    /// A cluster, by position and by the id it claims to have.
    Cluster {
        /// Its position in `clusters`.
        at: usize,
        /// Its id, made fit to print.
        id: String,
    },
    /// A row of a cluster.
    Row {
        /// The cluster's position in `clusters`.
        at: usize,
        /// The cluster's id, made fit to print.
        id: String,
        /// The row's position in `needs`.
        row: usize,
    },
}

impl fmt::Display for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("file"),
            Self::Machine { at, id } => write!(f, "machines[{at}]: machine \"{id}\""),
            Self::Cluster { at, id } => write!(f, "clusters[{at}]: cluster \"{id}\""),
            Self::Row { at, id, row } => {
                write!(f, "clusters[{at}].needs[{row}]: cluster \"{id}\" row {row}")
            }
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The part of the file it is in.
    pub place: FilePart,
    /// Which field, with which value, by which rule.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Why a file was refused: at least one problem, one per line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong, in the order of the file; at most [`MAX_PROBLEMS`].
    pub problems: Vec<Problem>,
    /// How many more there are.
    pub more: usize,
}

impl Refused {
    /// Notes a problem.
    pub(crate) fn push(&mut self, place: &FilePart, what: String) {
        if self.problems.len() < MAX_PROBLEMS {
            let place = place.clone();
            self.problems.push(Problem { place, what });
        } else {
            self.more += 1;
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.problems.len() + self.more
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        match self.more {
            0 => Ok(()),
            1 => f.write_str("\nand 1 more problem"),
            more => write!(f, "\nand {more} more problems"),
        }
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_beyond_the_bound_are_counted() {
        let mut refused = Refused::default();
        for _ in 0..MAX_PROBLEMS + 2 {
            refused.push(&FilePart::File, "is odd".to_owned());
        }
        assert_eq!(refused.count(), MAX_PROBLEMS + 2);
        assert!(
            refused
                .to_string()
                .ends_with("file: is odd\nand 2 more problems")
        );
    }
}
