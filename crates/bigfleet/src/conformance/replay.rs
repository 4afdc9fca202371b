//! Command lines: the one that tries a behaviour again, and the spelling of the public suite.

use super::Args;
use bigfleet_conformance::Profile;
use std::ffi::{OsStr, OsString};

/// Flags of the public suite, which are written with one dash there.
const WITH_ONE_DASH: [&str; 10] = [
    "provider",
    "target",
    "profile",
    "seed-count",
    "port",
    "out",
    "skip-baseline",
    "seed",
    "scale-seed",
    "soak",
];

/// The command that was run, without what only concerns this one run.
pub(super) fn command(args: &Args) -> String {
    let mut words: Vec<OsString> = vec!["bigfleet".into(), "conformance".into()];
    let mut flag = |name: &str, value: &OsStr| {
        words.push(format!("--{name}").into());
        words.push(value.to_owned());
    };
    if let Some(binary) = &args.binary {
        flag("binary", binary.as_os_str());
    }
    for arg in &args.binary_arg {
        flag("binary-arg", arg);
    }
    if let Some(target) = &args.target {
        flag("target", target.as_ref());
    }
    if let Some(provider) = &args.provider {
        flag("provider", provider.as_ref());
    }
    let profiles = args.profile.iter().copied().map(Profile::word);
    flag("profile", profiles.collect::<Vec<_>>().join(",").as_ref());
    flag("seed-count", args.seed_count.to_string().as_ref());
    flag("scale-seed", args.scale_seed.to_string().as_ref());
    flag("soak", format!("{}ms", args.soak.as_millis()).as_ref());
    let files = args.tls.files().ok().flatten();
    if let Some(files) = &files {
        flag("tls-cert", files.cert.as_os_str());
        flag("tls-key", files.key.as_os_str());
        flag("tls-ca", files.ca.as_os_str());
    }
    if args.fault_hooks {
        words.push("--fault-hooks".into());
    }
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    quoted.join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The same command line with two dashes where the public suite has one; only for this verb.
pub(crate) fn go_flags(args: Vec<OsString>) -> Vec<OsString> {
    if args.get(1).is_none_or(|verb| verb != "conformance") {
        return args;
    }
    let doubled = |arg: OsString| {
        let name = arg.to_str().and_then(|arg| arg.strip_prefix('-'));
        let name = name.map(|rest| rest.split_once('=').map_or(rest, |(name, _)| name));
        if name.is_some_and(|name| WITH_ONE_DASH.contains(&name)) {
            let mut two = OsString::from("-");
            two.push(&arg);
            return two;
        }
        arg
    };
    // What follows --binary-arg belongs to somebody else's command line.
    let mut theirs = false;
    let spelled = args.into_iter().map(|arg| {
        let is_theirs = std::mem::replace(&mut theirs, arg == "--binary-arg");
        if is_theirs { arg } else { doubled(arg) }
    });
    spelled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(args: &[&str]) -> Vec<OsString> {
        go_flags(args.iter().map(OsString::from).collect())
    }

    #[test]
    fn one_dash_is_two_for_this_verb_alone() {
        let ours = [
            "bigfleet",
            "conformance",
            "-profile=core",
            "-out",
            "-x",
            "--target",
            "a:1",
        ];
        let doubled = [
            "bigfleet",
            "conformance",
            "--profile=core",
            "--out",
            "-x",
            "--target",
            "a:1",
        ];
        assert_eq!(spelled(&ours), doubled);
        let theirs = ["bigfleet", "conformance", "--binary-arg", "-seed"];
        assert_eq!(spelled(&theirs), theirs);
        let other = ["bigfleet", "sim", "-seed"];
        assert_eq!(spelled(&other), other);
    }

    #[test]
    fn words_are_quoted_as_a_shell_takes_them() {
        assert_eq!(quoted(OsStr::new("target/release/x")), "target/release/x");
        assert_eq!(quoted(OsStr::new("it's a *")), r"'it'\''s a *'");
        assert_eq!(quoted(OsStr::new("")), "''");
    }
}
