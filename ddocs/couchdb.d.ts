/**
 * What CouchDB gives to the functions of a design document beside the language itself. Everything else that a
 * browser or Node has is missing there, so it is not declared here.
 */

/** Adds a row to the view; key and value are any JSON. Only in map functions. */
declare function emit(key?: unknown, value?: unknown): void

/** Adds a field to the search index. Only in functions of `indexes` and `nouveau`. */
declare function index(...args: unknown[]): void

/** Writes a line into CouchDB's log. */
declare function log(message: unknown): void

declare function sum(values: readonly number[]): number
declare function isArray(value: unknown): value is unknown[]
declare function toJSON(value: unknown): string
