//! The reader: walks a text once, member by member, building nothing.

use super::scan::{number_end, plain_end, same_and_plain, white_end, Nesting};
use super::text::{hex4, RawText};
use super::{Raw, SyntaxError};

/// Walks one JSON text from its beginning. Every method leaves the reader behind what it has read; after an error it is of
/// no further use.
#[derive(Debug)]
pub struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

/// The place inside an array or object that [`Reader::enter_array`] or [`Reader::enter_object`] began.
#[derive(Debug)]
pub struct Cursor {
    first: bool,
}

impl<'a> Reader<'a> {
    /// A reader at the beginning of `text`, which must be UTF-8.
    #[inline(always)]
    pub fn new(text: &'a [u8]) -> Self {
        Reader { text, at: 0 }
    }

    /// The byte offset reached.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Passes over white space, so that [`Reader::offset`] is where the next value begins.
    pub fn white_space(&mut self) {
        self.white();
    }

    /// Judges the next value to its end and gives it, unbuilt.
    #[inline(never)]
    pub fn value(&mut self) -> Result<Raw<'a>, SyntaxError> {
        self.any_value()
    }

    #[inline(always)]
    fn any_value(&mut self) -> Result<Raw<'a>, SyntaxError> {
        self.white();
        match self.peek() {
            Some(b'{') => self.container().map(Raw::Object),
            Some(b'[') => self.container().map(Raw::Array),
            _ => self.scalar(),
        }
    }

    /// Steps into the next value if it is an object; otherwise stays before it and gives `None`.
    #[inline]
    pub fn enter_object(&mut self) -> Option<Cursor> {
        self.enter(b'{')
    }

    /// Steps into the next value if it is an array; otherwise stays before it and gives `None`.
    #[inline]
    pub fn enter_array(&mut self) -> Option<Cursor> {
        self.enter(b'[')
    }

    /// The name of the next member, with the reader before its value; `None` behind the object's end.
    ///
    /// The caller reads the value before it asks for the next member.
    #[inline(never)]
    pub fn member(&mut self, cursor: &mut Cursor) -> Result<Option<RawText<'a>>, SyntaxError> {
        if self.at_member(cursor)? {
            self.name().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Whether there is a next member, with the reader before its name; `false` behind the object's end.
    #[inline(always)]
    fn at_member(&mut self, cursor: &mut Cursor) -> Result<bool, SyntaxError> {
        self.white();
        match self.peek() {
            Some(b'}') => {
                self.step();
                return Ok(false);
            }
            Some(b',') if !cursor.first => {
                self.step();
                self.white();
            }
            _ if cursor.first => {}
            _ => return Err(self.unexpected("',' or '}'")),
        }
        cursor.first = false;
        Ok(true)
    }

    /// Steps over a member's name and its colon if they are these, compactly spelled; otherwise stays before them.
    #[inline(always)]
    fn skip_name(&mut self, name: &[u8]) -> bool {
        let Some((b'"', rest)) = self.text.get(self.at..).and_then(|rest| rest.split_first()) else { return false };
        let Some((spelled, after)) = rest.split_at_checked(name.len()) else { return false };
        let found = same_and_plain(spelled, name) && after.starts_with(b"\":");
        if found {
            self.at = self.at.wrapping_add(name.len()).wrapping_add(3);
        }
        found
    }

    /// Whether a next element should follow, with the reader before it; `false` behind the array's end.
    ///
    /// The caller reads the value, which may turn out to be missing, before it asks for the next element.
    #[inline(never)]
    pub fn element(&mut self, cursor: &mut Cursor) -> Result<bool, SyntaxError> {
        self.white();
        match self.peek() {
            Some(b']') => {
                self.step();
                return Ok(false);
            }
            Some(b',') if !cursor.first => self.step(),
            _ if cursor.first => {}
            _ => return Err(self.unexpected("',' or ']'")),
        }
        cursor.first = false;
        Ok(true)
    }

    /// Judges the next value to its end and gives the last value of each of the `wanted` members; `None` if it is no object.
    ///
    /// The names are WTF-8, each named once. Reading is fastest when members come in the order of `wanted`.
    #[inline]
    pub fn members<const N: usize>(&mut self, wanted: &[&[u8]; N]) -> Result<Option<[Option<Raw<'a>>; N]>, SyntaxError> {
        let Some(cursor) = self.enter_object() else {
            self.value()?;
            return Ok(None);
        };
        let mut found = [None; N];
        self.rest(cursor, 0, wanted, &mut found)?;
        Ok(Some(found))
    }

    /// Reads the rest of an object. One for all lists of names: where they differ, nothing is lost, and a copy for each was 30 KB.
    #[inline(never)]
    fn rest(
        &mut self,
        mut cursor: Cursor,
        mut likely: usize,
        wanted: &[&[u8]],
        found: &mut [Option<Raw<'a>>],
    ) -> Result<(), SyntaxError> {
        // Writers keep an order, so a member's place tells which one it is, nearly always.
        while self.at_member(&mut cursor)? {
            let place = match wanted.get(likely) {
                Some(name) if self.skip_name(name) => Some(likely),
                _ => {
                    let name = self.name()?;
                    wanted.iter().position(|wanted| name.equals(wanted))
                }
            };
            let value = self.any_value()?;
            if let Some(place) = place {
                if let Some(slot) = found.get_mut(place) {
                    *slot = Some(value);
                }
                likely = place.wrapping_add(1);
            }
        }
        Ok(())
    }

    /// Checks that nothing but white space follows.
    #[inline]
    pub fn end(&mut self) -> Result<(), SyntaxError> {
        self.white();
        if self.at < self.text.len() {
            return Err(self.unexpected("the end of the text"));
        }
        Ok(())
    }

    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline(always)]
    fn step(&mut self) {
        self.at = self.at.wrapping_add(1);
    }

    #[inline(always)]
    fn white(&mut self) {
        // Compact text has none: one comparison, no call.
        if self.peek().is_some_and(|byte| byte <= b' ') {
            self.at = white_end(self.text, self.at);
        }
    }

    #[inline(always)]
    fn span(&self, from: usize) -> &'a [u8] {
        self.text.get(from..self.at).unwrap_or_default()
    }

    #[inline(never)]
    fn enter(&mut self, bracket: u8) -> Option<Cursor> {
        self.white();
        if self.peek() != Some(bracket) {
            return None;
        }
        self.step();
        Some(Cursor { first: true })
    }

    #[inline(always)]
    fn name(&mut self) -> Result<RawText<'a>, SyntaxError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a member's name in quotes"));
        }
        let name = self.text()?;
        self.white();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("':'"));
        }
        self.step();
        Ok(name)
    }

    #[inline(always)]
    fn scalar(&mut self) -> Result<Raw<'a>, SyntaxError> {
        match self.peek() {
            Some(b'"') => self.text().map(Raw::Text),
            Some(b'-' | b'0'..=b'9') => {
                let start = self.at;
                match number_end(self.text, start) {
                    Ok(end) => {
                        self.at = end;
                        Ok(Raw::Number(self.span(start)))
                    }
                    Err(at) => {
                        self.at = at;
                        Err(self.unexpected("a digit"))
                    }
                }
            }
            Some(b't') => self.literal(b"true", Raw::Bool(true)),
            Some(b'f') => self.literal(b"false", Raw::Bool(false)),
            Some(b'n') => self.literal(b"null", Raw::Null),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn literal(&mut self, word: &'static [u8], value: Raw<'a>) -> Result<Raw<'a>, SyntaxError> {
        for &letter in word {
            if self.peek() != Some(letter) {
                return Err(self.unexpected("true, false or null"));
            }
            self.step();
        }
        Ok(value)
    }

    /// Reads a text; the reader is at its opening quote.
    #[inline(always)]
    fn text(&mut self) -> Result<RawText<'a>, SyntaxError> {
        self.step();
        let start = self.at;
        self.at = plain_end(self.text, start);
        let mut escaped = false;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                    self.at = plain_end(self.text, self.at);
                }
                _ => return Err(self.unexpected("a character of a text, or its closing quote")),
            }
        }
        let body = self.span(start);
        self.step();
        Ok(RawText { body, escaped })
    }

    #[cold]
    fn escape(&mut self) -> Result<(), SyntaxError> {
        self.step();
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.step(),
            Some(b'u') => {
                self.step();
                if self.text.get(self.at..).and_then(hex4).is_none() {
                    while self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        self.step();
                    }
                    return Err(self.unexpected("four hexadecimal digits"));
                }
                self.at = self.at.wrapping_add(4);
            }
            _ => return Err(self.unexpected("an escape")),
        }
        Ok(())
    }

    /// Judges an array or object to its end, however deep; the reader is at its bracket.
    fn container(&mut self) -> Result<&'a [u8], SyntaxError> {
        let start = self.at;
        let mut nesting = Nesting::default();
        loop {
            // Before a value.
            self.white();
            match self.peek() {
                Some(b'{') => {
                    self.step();
                    self.white();
                    nesting.open(true);
                    if self.peek() != Some(b'}') {
                        self.name()?;
                        continue;
                    }
                    self.step();
                    nesting.close();
                }
                Some(b'[') => {
                    self.step();
                    self.white();
                    nesting.open(false);
                    if self.peek() != Some(b']') {
                        continue;
                    }
                    self.step();
                    nesting.close();
                }
                _ => {
                    self.scalar()?;
                }
            }
            // Behind a value: close what ends here, until there is another value to read.
            loop {
                let Some(object) = nesting.innermost_is_object() else {
                    return Ok(self.span(start));
                };
                self.white();
                match (self.peek(), object) {
                    (Some(b','), true) => {
                        self.step();
                        self.white();
                        self.name()?;
                        break;
                    }
                    (Some(b','), false) => {
                        self.step();
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.step();
                        nesting.close();
                    }
                    (_, true) => return Err(self.unexpected("',' or '}'")),
                    (_, false) => return Err(self.unexpected("',' or ']'")),
                }
            }
        }
    }

    #[cold]
    fn unexpected(&self, expected: &'static str) -> SyntaxError {
        SyntaxError { offset: self.at, expected, found: self.peek() }
    }
}

/// Judges a whole text and gives the last value of each of the `wanted` members; `None` if the text is no object.
#[inline]
pub fn members<'a, const N: usize>(
    text: &'a [u8],
    wanted: &[&[u8]; N],
) -> Result<Option<[Option<Raw<'a>>; N]>, SyntaxError> {
    let mut reader = Reader::new(text);
    let found = reader.members(wanted)?;
    reader.end()?;
    Ok(found)
}

/// Judges the rest of an object whose first members, `length` bytes of whole ones, are known already; gives the last value of each of the
/// `wanted` members in the rest, of which the one at `likely` should come first.
#[inline(always)]
pub fn members_behind<'a, const N: usize>(
    text: &'a [u8],
    length: usize,
    likely: usize,
    wanted: &[&[u8]; N],
) -> Result<[Option<Raw<'a>>; N], SyntaxError> {
    let mut reader = Reader { text, at: length };
    let mut found = [None; N];
    reader.rest(Cursor { first: false }, likely, wanted, &mut found)?;
    reader.end()?;
    Ok(found)
}
