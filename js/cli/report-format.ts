/** What a report calls itself, so that a later `--baseline` knows it. */

export const reportFormat = "journal-fold/report"
export const reportFormatVersion = 1
