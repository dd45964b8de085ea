//! Vectors as the cards of laws have them, executed on any law.

use std::panic::{catch_unwind, AssertUnwindSafe};

use lfn_law::card::Block;
use lfn_law::LawSpec;

use crate::batch::Failure;

/// Executes statements on a law, a connection's start first: the values of the fields after each.
pub(crate) fn drive(
    law: LawSpec,
    statements: &[String],
    fields: &[String],
) -> Result<Vec<Vec<f64>>, Failure> {
    let run = || {
        let mut block = Block::of(law);
        let mut after = |statement: &String| -> Result<Vec<f64>, String> {
            let words: Vec<&str> = statement.split_whitespace().collect();
            block.execute(&words)?;
            fields.iter().map(|field| block.field(field)).collect()
        };
        let placed = |(i, statement): (usize, &String)| {
            after(statement).map_err(|why| format!("statement {}, {statement:?}: {why}", i + 1))
        };
        let values: Result<Vec<Vec<f64>>, String> = statements.iter().enumerate().map(placed).collect();
        values.map_err(Failure::from)
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(Failure::of(panic)))
}
