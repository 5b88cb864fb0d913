//! How errors and panics leave the module.

use std::cell::RefCell;

use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::JsValue;

use super::encode;
use crate::error::Error;
use crate::json::Writer;
use crate::observer_log::{Failure, Refusal};

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The error to throw: an `Error` named `JournalFold`, whose message is the JSON text of code and details. Names in it may hold
/// unpaired surrogates, which only an escape carries unharmed.
pub(super) fn thrown(error: Error) -> JsValue {
    let mut out = encode::error_open(&error);
    out.close_object();
    named(out)
}

/// The same of a failure of the observer log, with the failure as its specification has it.
pub(super) fn thrown_failure(error: &Error, failure: &Failure) -> JsValue {
    let mut out = encode::error_open(error);
    failure.write(out.name(b"failure"));
    out.close_object();
    named(out)
}

/// The same of a refusal of the observer log's aggregate.
pub(super) fn thrown_refusal(refusal: &Refusal) -> JsValue {
    let mut out = encode::error_open(&Error::from(*refusal));
    refusal.write(out.name(b"refusal"));
    out.close_object();
    named(out)
}

fn named(out: Writer) -> JsValue {
    let made = js_sys::Error::new(&encode::text(out.into_bytes()));
    made.set_name("JournalFold");
    made.into()
}

/// Keeps the message of every panic from now on, for the host to fetch once the call has trapped, and shows it in the console.
pub(super) fn keep_panics() {
    std::panic::set_hook(Box::new(|info| {
        LAST_PANIC.with_borrow_mut(|last| *last = info.to_string());
        console_error_panic_hook::hook(info);
    }));
}

/// The message of the last panic; empty when a trap was none, such as a stack that ran over. Only for a trapped instance, of
/// which this is the last call.
#[wasm_bindgen]
pub fn last_panic() -> String {
    LAST_PANIC.with_borrow(String::clone)
}
