/** `couchdb-compile` has no types of its own. */
declare module 'couchdb-compile' {
  /** Assembles the document of a folder in the couchapp layout. A parent folder `_design` becomes part of the id. */
  export default function compile(
    folder: string,
    done: (error: Error | null, doc: { _id: string; [field: string]: unknown }) => void,
  ): void
}
