//! Maintenance: `docs/maintenance.md` is true, command by command.

use crate::process::Home;
use crate::tour::{run, served, typed_in};

const PAGE: &str = "docs/maintenance.md";

#[test]
fn every_command_of_the_maintenance_page_works() {
    let home = Home::new("maintenance");
    let mut asked = typed_in(PAGE, "1. One machine");
    let first = asked.remove(0);
    let flags = first.command.strip_prefix("bigfleet up ").unwrap();
    let mut running = home.up(&flags.split(' ').collect::<Vec<_>>());
    served(&mut running);
    for section in ["2. A rack, a zone", "3. A spot machine"] {
        asked.extend(typed_in(PAGE, section));
    }
    for typed in asked {
        run(&home, &typed);
    }
    let (code, _) = running.end("-INT");
    assert_eq!(code, Some(0));
    home.is_empty();
}
