//! What stays inside between calls, behind numbers.

use std::cell::RefCell;

use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::JsValue;

use super::errors::thrown;
use super::protocol::Machine;
use crate::deferred_clock::rebuild::{Rebuild, Verification};
use crate::deferred_clock::RunFold;
use crate::error::{Code, Error};
use crate::observer_log::rebuild::Rebuild as StreamRebuild;
use crate::observer_log::Live;

/// One object.
pub(super) enum Object {
    Run(Box<RunFold>),
    Rebuild(Box<Rebuild>),
    Verification(Box<Verification>),
    Live(Box<Live>),
    Machine(Box<Machine>),
    StreamRebuild(Box<StreamRebuild>),
}

#[derive(Default)]
struct Objects {
    slots: Vec<Option<Object>>,
    free: Vec<u32>,
}

thread_local! {
    static OBJECTS: RefCell<Objects> = RefCell::default();
}

/// Keeps an object and gives its number.
pub(super) fn keep(object: Object) -> u32 {
    OBJECTS.with_borrow_mut(|objects| {
        let number = objects.free.pop().unwrap_or(objects.slots.len() as u32);
        match objects.slots.get_mut(number as usize) {
            Some(slot) => *slot = Some(object),
            None => objects.slots.push(Some(object)),
        }
        number
    })
}

/// Takes an object out.
pub(super) fn take(number: u32) -> Option<Object> {
    OBJECTS.with_borrow_mut(|objects| {
        let taken = objects.slots.get_mut(number as usize).and_then(Option::take);
        if taken.is_some() {
            objects.free.push(number);
        }
        taken
    })
}

fn with<T>(number: u32, call: impl FnOnce(Option<&mut Object>) -> Result<T, Error>) -> Result<T, JsValue> {
    OBJECTS
        .with_borrow_mut(|objects| call(objects.slots.get_mut(number as usize).and_then(Option::as_mut)))
        .map_err(thrown)
}

fn gone<T>() -> Result<T, Error> {
    Err(Error::new(Code::Disposed, "an object that is there", "one that was disposed of"))
}

/// Calls something of a run.
pub(super) fn run<T>(number: u32, call: impl FnOnce(&mut RunFold) -> Result<T, Error>) -> Result<T, JsValue> {
    with(number, |object| match object {
        Some(Object::Run(run)) => call(run),
        _ => gone(),
    })
}

/// Calls something of a rebuild.
pub(super) fn rebuild<T>(number: u32, call: impl FnOnce(&mut Rebuild) -> Result<T, Error>) -> Result<T, JsValue> {
    with(number, |object| match object {
        Some(Object::Rebuild(rebuild)) => call(rebuild),
        _ => gone(),
    })
}

/// Calls something of a verification.
pub(super) fn verification<T>(
    number: u32,
    call: impl FnOnce(&Verification) -> Result<T, Error>,
) -> Result<T, JsValue> {
    with(number, |object| match object {
        Some(Object::Verification(verification)) => call(verification),
        _ => gone(),
    })
}

/// Calls something of a live aggregate.
pub(super) fn live<T>(number: u32, call: impl FnOnce(&mut Live) -> Result<T, Error>) -> Result<T, JsValue> {
    with(number, |object| match object {
        Some(Object::Live(live)) => call(live),
        _ => gone(),
    })
}

/// Calls something of a machine of the observer log's protocol.
pub(super) fn machine<T>(number: u32, call: impl FnOnce(&mut Machine) -> Result<T, Error>) -> Result<T, JsValue> {
    with(number, |object| match object {
        Some(Object::Machine(machine)) => call(machine),
        _ => gone(),
    })
}

/// Calls something of the verification of a stream.
pub(super) fn stream_rebuild<T>(
    number: u32,
    call: impl FnOnce(&mut StreamRebuild) -> Result<T, Error>,
) -> Result<T, JsValue> {
    with(number, |object| match object {
        Some(Object::StreamRebuild(rebuild)) => call(rebuild),
        _ => gone(),
    })
}

/// Frees an object; a number that is free already is left alone.
#[wasm_bindgen]
pub fn free(number: u32) {
    drop(take(number));
}

/// How many objects there are, for tests of leaks.
#[wasm_bindgen]
pub fn object_count() -> usize {
    OBJECTS.with_borrow(|objects| objects.slots.iter().flatten().count())
}
