//! Template: the file, at the start and whenever it changes (OP-45).

use crate::process::{Feed, StartRefused};
use bigfleet_operator_core::{Event, Template};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The template in a file; at the start a bad one is refused.
pub fn read_template(file: &Path) -> Result<Arc<Template>, StartRefused> {
    parsed(std::fs::read_to_string(file), file).map_err(StartRefused::Template)
}

fn parsed(text: std::io::Result<String>, file: &Path) -> Result<Arc<Template>, String> {
    let shown = file.display();
    let text = text.map_err(|why| format!("{shown}: {why}"))?;
    let template = Template::parse(&text).map_err(|why| format!("{shown}: {why}"))?;
    Ok(Arc::new(template))
}

/// Tells the core of every change; a file that cannot be used leaves the last one in force.
pub(crate) async fn watch(file: PathBuf, feed: Feed) {
    let mut last = tokio::fs::read_to_string(&file).await.ok();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let text = tokio::fs::read_to_string(&file).await;
        let now = text.as_ref().ok().cloned();
        if now == last {
            continue;
        }
        last = now;
        if !feed.send(Event::Template(parsed(text, &file))).await {
            return;
        }
    }
}
