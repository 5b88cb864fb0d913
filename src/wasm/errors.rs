//! How errors and panics leave the module.

use std::cell::RefCell;

use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::JsValue;

use super::encode;
use crate::error::Error;

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The error to throw: an `Error` named `JournalFold`, whose message is the JSON text of code and details. Names in it may hold
/// unpaired surrogates, which only an escape carries unharmed.
pub(super) fn thrown(error: Error) -> JsValue {
    let made = js_sys::Error::new(&encode::text(encode::error(&error)));
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
