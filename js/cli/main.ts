#!/usr/bin/env node
/** The command `journal-fold`. Everything it does is in `program.ts`; here it meets the process. */
import { program } from "./program.js"

program(process.argv.slice(2)).then((code) => {
  // Not process.exit(): what is still on its way out must arrive.
  process.exitCode = code
})
