/** The names of a store are the same for every host. */
export { namesOf, quote, quoted, type NameMapping, type Names, type TableKey } from "../names.js"
