//! The recorded cases under `tests/vectors`, embedded, so that they are there in a browser too.

use serde_json::Value;

macro_rules! files {
    ($name:ident: $($file:literal)+) => {
        match $name {
            $($file => include_str!(concat!("../vectors/", $file)),)+
            other => panic!("no file {other} is embedded"),
        }
    };
}

/// A file of cases, by its name under `tests/vectors`.
pub fn read_file(name: &str) -> Value {
    let text = files!(name:
        "deviations.json"
        "deferred-clock/capture.json"
        "deferred-clock/checkpoint.json"
        "deferred-clock/rebuild.json"
        "deferred-clock/reduce.json"
        "observer-log/aggregate.json"
        "observer-log/append.json"
        "observer-log/cadence.json"
        "observer-log/recover.json"
        "observer-log/restore.json"
        "observer-log/rows.json"
    );
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"))
}
