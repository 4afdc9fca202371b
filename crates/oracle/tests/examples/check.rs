//! The one place that names the engine under test.

/// Decides on `before` and compares with `after`; the language is the testkit's.
#[track_caller]
pub(crate) fn check(before: &str, after: &str) {
    bigfleet_testkit::check(bigfleet_oracle::decide, before, after);
}
