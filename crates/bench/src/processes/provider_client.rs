//! The provider as its caller sees it: a client, and machines listed page by page.

use bigfleet_net::{Dial, MAX_MESSAGE_BYTES};
use bigfleet_wire::v1alpha1 as wire;
use tonic::transport::Channel;
use wire::capacity_provider_client::CapacityProviderClient;

use super::process::Process;
use super::report::NotMeasured;

pub(crate) type Client = CapacityProviderClient<Channel>;

/// A client on a connection of its own.
pub(crate) fn client(provider: &Process) -> Result<Client, NotMeasured> {
    let channel = Dial::provider(None).channel(&provider.addr.to_string());
    let channel = channel.map_err(|why| NotMeasured::Wrong(why.to_string()))?;
    Ok(Client::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES))
}

pub(crate) fn refused(status: tonic::Status) -> NotMeasured {
    NotMeasured::Wrong(format!("the provider refused: {status}"))
}

/// The ids of those machines in order, by pages of so many; 0 is all of them on one.
pub(crate) async fn list(
    client: &Client,
    page_size: i32,
    of: impl Fn(&wire::Machine) -> bool,
) -> Result<Vec<String>, NotMeasured> {
    let mut client = client.clone();
    let mut filter = wire::ListFilter {
        page_size,
        ..wire::ListFilter::default()
    };
    let mut ids = Vec::new();
    loop {
        let page = client.list(filter.clone()).await.map_err(refused)?;
        let page = page.into_inner();
        let machines = page.machines.into_iter().filter(&of);
        ids.extend(machines.map(|machine| machine.id));
        if page.next_page_token.is_empty() {
            ids.sort_unstable();
            return Ok(ids);
        }
        filter.page_token = page.next_page_token;
    }
}
