//! Faults of the kernel's extensions for programs.

use postern_kernel::{Ended, Fault, Image};
use serde::Serialize;

/// A fault for programs.
#[derive(Serialize)]
pub struct FaultView {
    kind: &'static str,
    message: String,
    offset: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
}

impl FaultView {
    /// Of an end that is a fault.
    pub fn new(ended: &Ended, image: Option<&Image>) -> Option<FaultView> {
        let located = match image {
            Some(image) => ended.clone().located(image),
            None => ended.clone(),
        };
        let kind = located.name();
        let Ended::Fault(fault) = located else {
            return None;
        };
        let message = fault.to_string();
        let Fault {
            offset,
            address,
            service,
            symbol,
            file,
            line,
            ..
        } = fault;
        Some(FaultView {
            kind,
            message,
            offset,
            address: (kind == "page-fault").then_some(address),
            service: (kind == "bad-argument").then_some(service),
            symbol,
            file,
            line,
        })
    }
}
