//! `bigfleet completions`, in each shell it is for: what Tab finds is what the shard has now.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::called::call;
use crate::scene::Scene;
use crate::terminal::Terminal;

/// The script for a shell, in a file: an argument may not be that long.
fn script(scene: &Scene, shell: &str) -> PathBuf {
    let file = scene.folder.0.join(format!("completion.{shell}"));
    std::fs::write(&file, call(&["completions", shell]).done()).unwrap();
    file
}

/// Where this binary comes first.
fn path() -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_bigfleet"));
    format!("{}:/usr/bin:/bin", binary.parent().unwrap().display())
}

/// What a shell prints that runs this.
fn ran(scene: &Scene, shell: &str, args: &[&str]) -> Vec<String> {
    let output = Command::new(shell)
        .args(args)
        .env("PATH", path())
        .env("HOME", &scene.folder.0)
        .env("BIGFLEET_SHARD", scene.shard.addr.to_string())
        .output()
        .unwrap_or_else(|why| panic!("{shell}: {why}; `cargo xtask setup` installs it"));
    let text = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(err, "", "{shell} says nothing of its own");
    text.lines().map(str::to_owned).collect()
}

/// What bash completes after these words.
fn bash(scene: &Scene, words: &[&str]) -> Vec<String> {
    let typed = words.join(" ");
    let file = scene.folder.0.join("asked.bash");
    let asked = format!(
        "source {}\nCOMP_WORDS=({typed} '') COMP_CWORD={}\n_bigfleet_live bigfleet '' {}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script(scene, "bash").display(),
        words.len(),
        words[words.len() - 1]
    );
    std::fs::write(&file, asked).unwrap();
    ran(scene, "bash", &["--norc", &file.display().to_string()])
}

/// What fish completes after these words: it can be asked.
fn fish(scene: &Scene, words: &[&str]) -> Vec<String> {
    let asked = format!(
        "source {}; complete -C '{} '",
        script(scene, "fish").display(),
        words.join(" ")
    );
    let lines = ran(scene, "fish", &["--no-config", "-c", &asked]);
    // A description follows a tab.
    let name = |line: String| line.split('\t').next().unwrap_or_default().to_owned();
    lines.into_iter().map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bash_and_fish_complete_the_names_a_shard_has() {
    let scene = Scene::new("completion").await;
    let missing = format!("a/{}", scene.need("missing"));
    for (shell, completed) in [
        ("bash", bash as fn(&Scene, &[&str]) -> Vec<String>),
        ("fish", fish as fn(&Scene, &[&str]) -> Vec<String>),
    ] {
        let machine = scene.serving();
        for (words, name) in [
            (&["bigfleet", "get", "machines"][..], machine.as_str()),
            (&["bigfleet", "drain"][..], machine.as_str()),
            (&["bigfleet", "describe", "need"][..], missing.as_str()),
            (&["bigfleet", "explain"][..], "a"),
            (&["bigfleet", "release"][..], "a"),
            (&["bigfleet", "pause", "--cluster"][..], "a"),
        ] {
            let found = completed(&scene, words);
            let has = found.iter().any(|one| one == name);
            assert!(has, "{shell} {words:?} without {name}: {found:?}");
        }
        let kinds = completed(&scene, &["bigfleet", "get"]);
        assert!(kinds.contains(&"machines".to_owned()), "{shell}: {kinds:?}");
    }
}

/// zsh completes where somebody types, and nowhere else: so it is typed, in a terminal.
#[tokio::test(flavor = "multi_thread")]
async fn zsh_completes_the_names_a_shard_has() {
    let scene = Scene::new("completion-zsh").await;
    let home = scene.folder.0.join("zsh");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::rename(script(&scene, "zsh"), home.join("_bigfleet")).unwrap();
    let start = "PROMPT='zsh> '\nunsetopt zle_bracketed_paste\nfpath=($ZDOTDIR $fpath)\n\
                 autoload -Uz compinit && compinit -u -d $ZDOTDIR/dump\n";
    std::fs::write(home.join(".zshrc"), start).unwrap();
    let (home, path) = (home.display().to_string(), path());
    let shard = scene.shard.addr.to_string();
    let env = [
        ("ZDOTDIR", home.as_str()),
        ("HOME", home.as_str()),
        ("PATH", path.as_str()),
        ("BIGFLEET_SHARD", shard.as_str()),
    ];
    let machine = scene.serving();
    let missing = format!("a/{}", scene.need("missing"));
    // All but the end of a name, which Tab has to bring.
    let begun = |name: &str| name[..name.len() - 1].to_owned();
    for (typed, found) in [
        (
            format!("get machines {}", begun(&machine)),
            machine.as_str(),
        ),
        (format!("drain {}", begun(&machine)), machine.as_str()),
        (
            format!("describe need {}", begun(&missing)),
            missing.as_str(),
        ),
        ("explain ".to_owned(), "bigfleet explain a"),
        ("pause --cluster ".to_owned(), "bigfleet pause --cluster a"),
        ("get shortf".to_owned(), "shortfalls"),
    ] {
        let mut zsh = Terminal::of("zsh", &["-i"], (120, 40), &env);
        zsh.shows("zsh> ");
        zsh.press(&format!("bigfleet {typed}\t"));
        // In the line, or below it where several begin like that.
        zsh.shows(found);
    }
}
