//! `bigfleet conformance mutants`: which behaviour notices which planted defect.

use super::folders::Folders;
use crate::{failure::Failure, output::say, table::columns};
use bigfleet_conformance::{
    Binary,
    mutants::{Defect, Hunted, control, hunt},
};
use clap::{Args as ClapArgs, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::{io::IsTerminal, time::Instant};

/// Letters of what a behaviour said that are shown to people.
const SENTENCE: usize = 60;

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct MutantsArgs {
    /// Only this defect; may be repeated
    #[arg(long, value_name = "NAME", value_parser = defect)]
    defect: Vec<&'static str>,

    /// The form of the answer [default: table on a terminal, else json]
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// One JSON object.
    Json,
    /// A table for people.
    Table,
}

fn defect(name: &str) -> Result<&'static str, String> {
    let found = Defect::all().into_iter().find(|defect| defect.name == name);
    let found = found.map(|defect| defect.name);
    found.ok_or_else(|| "no defect has this name; without --defect all are listed".to_owned())
}

#[derive(Serialize)]
struct Line {
    defect: &'static str,
    does: &'static str,
    caught: bool,
    behaviour: Option<&'static str>,
    reason: Option<String>,
}

#[derive(Serialize)]
struct Object {
    planted: usize,
    caught: usize,
    missed: Vec<&'static str>,
    wall_seconds: f64,
    mutants: Vec<Line>,
}

/// Hunts every defect; one that is missed fails the command.
pub(super) fn run(args: &MutantsArgs) -> Result<(), Failure> {
    let undone = |why: &dyn std::fmt::Display| Failure::Undone(why.to_string());
    let began = Instant::now();
    let mut defects = Defect::all();
    if !args.defect.is_empty() {
        defects.retain(|defect| args.defect.contains(&defect.name));
    }
    let binary = Binary {
        program: std::env::current_exe().map_err(|why| undone(&why))?,
        args: vec!["provider".into(), "fake".into()],
        first_port: None,
    };
    let folders = Folders::new(None)?;
    let bar = bar(defects.len());
    let runtime = tokio::runtime::Runtime::new().map_err(|why| undone(&why))?;
    let hunted = runtime.block_on(async {
        let asked = bigfleet_net::asked_to_end().map_err(|why| undone(&why))?;
        let all = async {
            let sound = control(&binary, folders.scratch(), &defects).await;
            let sound = sound.map_err(|why| undone(&why))?;
            if !sound.is_empty() {
                let why = sound.join("\n");
                return Err(Failure::Undone(format!("without any defect:\n{why}")));
            }
            let tell = |one: &Hunted| {
                bar.set_message(one.defect.name);
                bar.inc(1);
            };
            let hunted = hunt(&binary, folders.scratch(), &defects, tell).await;
            hunted.map_err(|why| undone(&why))
        };
        tokio::select! {
            hunted = all => hunted,
            () = asked => Err(Failure::Undone("asked to end before the hunt was over".to_owned())),
        }
    });
    bar.finish_and_clear();
    answer(args, hunted?, began.elapsed().as_secs_f64())
}

fn answer(args: &MutantsArgs, hunted: Vec<Hunted>, wall_seconds: f64) -> Result<(), Failure> {
    let lines: Vec<Line> = hunted.into_iter().map(line).collect();
    let missed = lines.iter().filter(|line| !line.caught);
    let missed: Vec<&str> = missed.map(|line| line.defect).collect();
    let object = Object {
        planted: lines.len(),
        caught: lines.len() - missed.len(),
        missed: missed.clone(),
        wall_seconds: (wall_seconds * 10.0).round() / 10.0,
        mutants: lines,
    };
    let usual = if std::io::stdout().is_terminal() {
        Output::Table
    } else {
        Output::Json
    };
    say(&match args.output.unwrap_or(usual) {
        Output::Json => serde_json::to_string(&object).map_err(std::io::Error::from)? + "\n",
        Output::Table => table(&object),
    })?;
    if missed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Undone(format!("missed: {}", missed.join(", "))))
    }
}

fn line(hunted: Hunted) -> Line {
    let (behaviour, reason) = hunted.caught.unzip();
    Line {
        defect: hunted.defect.name,
        does: hunted.defect.does,
        caught: behaviour.is_some(),
        behaviour,
        reason,
    }
}

fn table(object: &Object) -> String {
    let row = |line: &Line| {
        let reason = line.reason.as_deref().unwrap_or_default();
        let mut short: String = reason.chars().take(SENTENCE).collect();
        if short.len() < reason.len() {
            short.push('…');
        }
        vec![
            line.defect.to_owned(),
            line.does.to_owned(),
            line.behaviour.unwrap_or("MISSED").to_owned(),
            short,
        ]
    };
    let header = ["DEFECT", "A PROVIDER THAT", "CAUGHT BY", "HOW"];
    let table = columns(&header, object.mutants.iter().map(row));
    let Object {
        planted, caught, ..
    } = object;
    format!(
        "{table}\n{caught} of {planted} caught in {} s\n",
        object.wall_seconds
    )
}

/// On stderr, and only if that is a terminal.
fn bar(defects: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(defects as u64);
    let style = ProgressStyle::with_template("{msg:32!} {wide_bar} {pos}/{len} {elapsed}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}
