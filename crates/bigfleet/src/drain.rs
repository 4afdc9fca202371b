//! `bigfleet drain` and `undrain`: machines leave once others serve in their place.

use crate::{connection::SteerArgs, failure::Failure, verbs::has_colour};
use bigfleet_ctl::{DrainDeadline, DrainOrder, Style};
use bigfleet_provider_fake::duration;
use clap::Args as ClapArgs;

/// Which machines.
#[derive(Debug, ClapArgs)]
struct MachinesArgs {
    /// The machines: machine/ID or ID, several with spaces
    #[arg(required_unless_present = "selector", value_name = "MACHINE")]
    machines: Vec<String>,
    /// All machines with these labels, those that could be bought included: KEY=VALUE, several with commas
    #[arg(
        short = 'l',
        long,
        value_name = "KEY=VALUE",
        conflicts_with = "machines",
        default_value = None
    )]
    selector: Option<String>,
}

impl MachinesArgs {
    fn order(&self, reason: &str) -> Result<DrainOrder, Failure> {
        let id = |word: &String| match word.split_once('/') {
            None => Ok(word.clone()),
            Some(("machine" | "machines" | "ma", id)) => Ok(id.to_owned()),
            Some((kind, _)) => Err(Failure::Input(format!(
                "\"{word}\": a {kind} cannot be drained; name machines, as in machine/m-1"
            ))),
        };
        Ok(DrainOrder {
            machines: self.machines.iter().map(id).collect::<Result<_, _>>()?,
            selector: self.selector.clone().unwrap_or_default(),
            reason: reason.to_owned(),
            ..DrainOrder::default()
        })
    }
}

/// `bigfleet drain`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DrainArgs {
    #[command(flatten)]
    machines: MachinesArgs,
    /// When to stop waiting for replacements: how long, such as 2h, or a moment, such as 2026-01-02T15:04:05Z
    /// [default: never]
    #[arg(long, value_name = "WHEN", value_parser = deadline, conflicts_with = "now", default_value = None)]
    deadline: Option<DrainDeadline>,
    /// Wait for nothing: drain at once, past disruption budgets when the grace is over
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    steer: SteerArgs,
}

fn deadline(text: &str) -> Result<DrainDeadline, String> {
    if let Ok(span) = duration(text) {
        return Ok(DrainDeadline::In(span));
    }
    DrainDeadline::moment(text).ok_or_else(|| {
        "it is neither a duration such as 2h nor a moment such as 2026-01-02T15:04:05Z".to_owned()
    })
}

/// Marks machines to leave.
pub(crate) fn drain(args: &DrainArgs) -> Result<(), Failure> {
    let steer = &args.steer;
    let mut order = args.machines.order(&steer.reason)?;
    order.accepts_many = steer.is_sure();
    order.deadline = match &args.deadline {
        _ if args.now => DrainDeadline::Now,
        Some(deadline) => deadline.clone(),
        None => DrainDeadline::None,
    };
    let style = Style {
        form: steer.form().clone(),
        colour: has_colour(),
        ..Style::default()
    };
    steer.steer_asking(
        async |client| bigfleet_ctl::drain_question(client, &order).await,
        async |client| bigfleet_ctl::drain(client, &order, steer.dry_run, &style).await,
    )
}

/// `bigfleet undrain`.
#[derive(Debug, ClapArgs)]
pub(crate) struct UndrainArgs {
    #[command(flatten)]
    machines: MachinesArgs,
    #[command(flatten)]
    steer: SteerArgs,
}

/// Lifts marks.
pub(crate) fn undrain(args: &UndrainArgs) -> Result<(), Failure> {
    let steer = &args.steer;
    if steer.dry_run {
        let why = "--dry-run: lifting a mark changes no machine by itself; `bigfleet get drains` lists the marks";
        return Err(Failure::Input(why.to_owned()));
    }
    let order = args.machines.order(&steer.reason)?;
    let style = Style {
        form: steer.form().clone(),
        colour: has_colour(),
        ..Style::default()
    };
    let question = match order.machines.len() {
        0 => format!("undrain the machines with {}", order.selector),
        1 => format!("undrain machine {}", order.machines[0]),
        count => format!("undrain {count} machines"),
    };
    steer.steer_asking(
        async |_| Ok(question),
        async |client| bigfleet_ctl::undrain(client, &order, &style).await,
    )
}
