//! The boundary's own functions, called as JavaScript calls them.

use journal_fold::wasm;
use wasm_bindgen_test::wasm_bindgen_test;

#[wasm_bindgen_test]
fn the_digest_of_the_empty_text_is_that_of_sha_256() {
    assert_eq!(wasm::content_digest(0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

#[wasm_bindgen_test]
fn every_error_code_and_every_finding_has_a_meaning() {
    for table in [wasm::error_codes(), wasm::finding_ids()] {
        let table: serde_json::Value = serde_json::from_str(&table).unwrap();
        let rows = table.as_object().unwrap();
        assert!(rows.len() > 10);
        assert!(rows.values().all(|meaning| !meaning.to_string().is_empty()));
    }
}

#[wasm_bindgen_test]
fn the_version_is_the_crates() {
    assert_eq!(wasm::version(), env!("CARGO_PKG_VERSION"));
}
