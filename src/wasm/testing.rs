//! For tests alone, behind a feature that no published build has: deliberate traps, and the JSON reader and writer laid open.

use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::JsValue;

use super::errors::thrown;
use super::{encode, inbox};
use crate::error::{Code, Error};
use crate::json::{first_invalid_utf8, members, nearest_double, Raw, RawText, Reader, SyntaxError, Writer};

/// Panics.
#[wasm_bindgen]
#[allow(clippy::panic)]
pub fn test_panic() {
    panic!("a deliberate panic");
}

/// Runs over the stack.
#[wasm_bindgen]
pub fn test_stack_overflow(depth: u32) -> u32 {
    #[inline(never)]
    fn deeper(depth: u32) -> u32 {
        let block = std::hint::black_box([depth; 64]);
        let below = if depth == 0 { 0 } else { deeper(depth.wrapping_sub(1)) };
        below.wrapping_add(block.iter().copied().max().unwrap_or(0))
    }
    deeper(depth)
}

/// Asks for more memory than there is.
#[wasm_bindgen]
pub fn test_out_of_memory() -> usize {
    let mut all = Vec::new();
    loop {
        all.push(vec![1_u8; 1 << 28]);
        if all.len() > 64 {
            return all.len();
        }
    }
}

/// Reads the text in the inbox and writes it again, value by value; members keep their order and their repeats.
#[wasm_bindgen]
pub fn test_json(length: usize) -> Result<String, JsValue> {
    inbox::with(|inbox| {
        let text = inbox.bytes(0, length);
        if let Some(offset) = first_invalid_utf8(text) {
            return Err(Error::new(Code::TextNotUtf8, "UTF-8", format!("another byte at {offset}")));
        }
        rewrite(text).map(encode::text).map_err(|error| Error::syntax(Code::PayloadNotJson, &error))
    })
    .map_err(thrown)
}

/// The last value of a member of the object in the inbox, written again; its name stands behind the object.
#[wasm_bindgen]
pub fn test_json_member(length: usize, name_length: usize) -> Result<Option<String>, JsValue> {
    inbox::with(|inbox| {
        let found = members(inbox.bytes(0, length), &[inbox.bytes(length, name_length)]);
        let found = found.map_err(|error| thrown(Error::syntax(Code::PayloadNotJson, &error)))?;
        Ok(found.and_then(|[value]| value).map(|value| {
            let mut out = Writer::new();
            write_value(&mut out, value);
            encode::text(out.into_bytes())
        }))
    })
}

fn rewrite(text: &[u8]) -> Result<Vec<u8>, SyntaxError> {
    let mut reader = Reader::new(text);
    let value = reader.value()?;
    reader.end()?;
    let mut out = Writer::new();
    write_value(&mut out, value);
    Ok(out.into_bytes())
}

enum Step<'a> {
    Value(Raw<'a>),
    Name(RawText<'a>),
    CloseArray,
    CloseObject,
}

/// Writes a judged value without recursion.
fn write_value(out: &mut Writer, value: Raw<'_>) {
    let mut steps = vec![Step::Value(value)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Name(name) => {
                out.name(&name.to_wtf8());
            }
            Step::CloseArray => {
                out.close_array();
            }
            Step::CloseObject => {
                out.close_object();
            }
            Step::Value(Raw::Null) => {
                out.null();
            }
            Step::Value(Raw::Bool(value)) => {
                out.boolean(value);
            }
            Step::Value(Raw::Number(spelled)) => {
                out.double(nearest_double(spelled));
            }
            Step::Value(Raw::Text(text)) => {
                out.text(&text.to_wtf8());
            }
            Step::Value(Raw::Array(span)) => {
                out.open_array();
                steps.push(Step::CloseArray);
                let start = steps.len();
                let mut reader = Reader::new(span);
                if let Some(mut elements) = reader.enter_array() {
                    while let Ok(true) = reader.element(&mut elements) {
                        let Ok(value) = reader.value() else { break };
                        steps.push(Step::Value(value));
                    }
                }
                if let Some(added) = steps.get_mut(start..) {
                    added.reverse();
                }
            }
            Step::Value(Raw::Object(span)) => {
                out.open_object();
                steps.push(Step::CloseObject);
                let start = steps.len();
                let mut reader = Reader::new(span);
                if let Some(mut members) = reader.enter_object() {
                    while let Ok(Some(name)) = reader.member(&mut members) {
                        let Ok(value) = reader.value() else { break };
                        steps.push(Step::Name(name));
                        steps.push(Step::Value(value));
                    }
                }
                if let Some(added) = steps.get_mut(start..) {
                    added.reverse();
                }
            }
        }
    }
}
