//! What a running shard shows of itself, against what the test did to it; and a reader that does not
//! read, which only keeps itself waiting.

/// The header, then the rest, with nothing before and no second one.
macro_rules! read {
    ($reader:expr, $method:ident($request:expr), $module:ident::$entry:ident) => {{
        use bigfleet_wire::v1alpha1::$module::Frame;
        let stream = $reader.$method($request).await.unwrap().into_inner();
        let mut frames = $crate::reads::scene::all(stream)
            .await
            .into_iter()
            .map(|one| one.frame.unwrap());
        let Some(Frame::Header(header)) = frames.next() else {
            panic!("no header comes first");
        };
        let entries: Vec<_> = frames
            .map(|frame| match frame {
                Frame::$entry(entry) => entry,
                other => panic!("{other:?}"),
            })
            .collect();
        (header, entries)
    }};
}

mod machines;
mod needs;
mod scene;
mod whole;
mod work;
