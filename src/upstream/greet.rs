//! Finding out which era a server is of, and greeting it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::call::Caller;
use super::fault::StartFault;
use super::listed::Greeting;
use super::peer::{Peer, PeerFault, PeerOutcome, PeerRequest};
use crate::jsonrpc::object::{self, Change};
use crate::jsonrpc::{Era, ErrorObject, Members, NoObject, Version, code, instance, meta};

/// How long a server may be silent at `server/discover` until it is greeted the old way, too.
const SILENCE: Duration = Duration::from_secs(10);

/// What this side calls itself.
pub(super) fn client_info() -> serde_json::Value {
    json!({"name": "almanac", "version": env!("CARGO_PKG_VERSION")})
}

/// The params with what a modern request carries.
pub(super) fn modern_params(params: Option<&RawValue>, caller: &Caller) -> Result<Box<RawValue>, NoObject> {
    let empty = to_raw_value(&json!({})).map_err(|_| NoObject)?;
    let capabilities = caller.capabilities.as_deref().unwrap_or(&empty).get();
    let (version, info) = (format!("\"{}\"", Version::LATEST_MODERN), client_info().to_string());
    let level = caller.log_level.as_ref().map(|level| serde_json::Value::from(level.as_str()).to_string());
    let mut set = vec![
        (meta::PROTOCOL_VERSION, version.as_str()),
        (meta::CLIENT_INFO, info.as_str()),
        (meta::CLIENT_CAPABILITIES, capabilities),
    ];
    set.extend(level.as_deref().map(|level| (meta::LOG_LEVEL, level)));
    meta::change(params.unwrap_or(&empty), |_, _| Change::Keep, &set)
}

/// Greets a server whose era is not known, or is.
pub(super) async fn greet(
    peer: &Arc<Peer>,
    known: Option<Era>,
    caller: &Caller,
    limit: Duration,
) -> Result<Greeting, StartFault> {
    if known == Some(Era::Legacy) {
        return initialize(peer, caller, limit).await;
    }
    let params = modern_params(None, caller)?;
    let discover = peer.request(PeerRequest::plain("server/discover", Some(&params), limit));
    tokio::pin!(discover);
    let answered = tokio::select! {
        answered = &mut discover => answered,
        () = tokio::time::sleep(SILENCE.min(limit / 2)) => {
            // Of the two the first that is answered with a result decides.
            tokio::select! {
                Ok(Ok(result)) = &mut discover => Ok(Ok(result)),
                greeting = initialize(peer, caller, limit) => return greeting,
            }
        }
    };
    match answered {
        Ok(outcome) => match judge(outcome)? {
            Some(greeting) => Ok(greeting),
            None => initialize(peer, caller, limit).await,
        },
        Err(PeerFault::Closed(why) | PeerFault::Unasked(why)) => Err(StartFault::EndedAtProbe(why)),
        Err(fault) => Err(fault.into()),
    }
}

/// What the answer to `server/discover` says; nothing if the server is of the other era.
fn judge(outcome: PeerOutcome) -> Result<Option<Greeting>, StartFault> {
    let result = match outcome {
        Ok(result) => result,
        Err(error) => {
            let error = ErrorObject::read(&error);
            let is_modern =
                [code::HEADER_MISMATCH, code::MISSING_CAPABILITY, code::UNSUPPORTED_VERSION].contains(&error.code);
            return if is_modern { Err(StartFault::Refused(error.message)) } else { Ok(None) };
        }
    };
    if instance::is_own(&result) {
        return Err(StartFault::Itself);
    }
    let members = Members::read(&result)?;
    let versions: Vec<String> = members
        .get("supportedVersions")
        .and_then(|versions| serde_json::from_str(versions.get()).ok())
        .unwrap_or_default();
    if !versions.iter().any(|version| version == Version::LATEST_MODERN.as_str()) {
        return Ok(None);
    }
    let info = meta::get(&result, meta::SERVER_INFO).or_else(|| members.get("serverInfo"));
    Ok(Some(Greeting {
        era: Era::Modern,
        version: Version::LATEST_MODERN.to_string(),
        capabilities: capabilities(&members),
        instructions: members.text("instructions").map(Into::into),
        server_info: info.map(ToOwned::to_owned),
    }))
}

fn capabilities(members: &Members<'_>) -> Box<RawValue> {
    let found = members.get("capabilities").filter(|found| found.get().starts_with('{'));
    found.map(ToOwned::to_owned).unwrap_or_default()
}

async fn initialize(peer: &Arc<Peer>, caller: &Caller, limit: Duration) -> Result<Greeting, StartFault> {
    let empty = to_raw_value(&json!({})).map_err(|_| NoObject)?;
    let version = Version::LATEST_LEGACY.as_str();
    let params = to_raw_value(&json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client_info()}));
    let capabilities_of = caller.capabilities.as_deref().unwrap_or(&empty).get();
    let params = object::set(&params.map_err(|_| NoObject)?, "capabilities", capabilities_of)?;
    let outcome = peer.request(PeerRequest::plain("initialize", Some(&params), limit)).await?;
    let result = outcome.map_err(|error| StartFault::Refused(ErrorObject::read(&error).message))?;
    let members = Members::read(&result)?;
    let version = members.text("protocolVersion").unwrap_or_default();
    if Version::parse(&version).is_none_or(|version| version.era() == Era::Modern) {
        return Err(StartFault::Version(version.chars().take(40).collect()));
    }
    peer.notify("notifications/initialized", None)?;
    Ok(Greeting {
        era: Era::Legacy,
        version: version.into_owned(),
        capabilities: capabilities(&members),
        instructions: members.text("instructions").map(Into::into),
        server_info: members.get("serverInfo").map(ToOwned::to_owned),
    })
}
