import type { Doc } from '../couch/documents.ts'

/** A document on which functions are tried. */
export interface Sample {
  /** Name for messages. */
  readonly name: string
  readonly doc: Doc
}

/** Samples of a module in `_samples`, which exports a document or an array of documents. */
export function samplesFrom(file: string, exported: unknown): Sample[] {
  const docs = (Array.isArray(exported) ? exported : [exported]) as Doc[]
  return docs.map((doc, index) => ({
    name: docs.length > 1 ? `${file}[${index}]` : file,
    doc: { ...doc, _id: doc._id ?? `sample-${index}` },
  }))
}

/** The folder's own samples, and documents that any database may hold. */
export function allSamples(own: readonly Sample[]): Sample[] {
  const fields = new Set(['type', 'state', 'docstate', ...own.flatMap(({ doc }) => Object.keys(doc))])
  const nulls = Object.fromEntries([...fields].filter((field) => !field.startsWith('_')).map((field) => [field, null]))
  return [
    ...own,
    { name: 'a document with nothing but an id', doc: { _id: 'sample' } },
    { name: 'a document with null in every field', doc: { _id: 'sample', ...nulls } },
    { name: 'a design document', doc: { _id: '_design/sample', language: 'javascript', views: {} } },
  ]
}

/** A document as stored: filters get revisions, and so does `validate_doc_update` for an existing document. */
export const stored = (doc: Doc): Doc => ({ ...doc, _rev: `1-${HASH}`, _revisions: { start: 1, ids: [HASH] } })

const HASH = '967a00dff5e02add41819138abb3284d'

/** A deleted document. Maps never get one. */
export const tombstone: Sample = { name: 'a deleted document', doc: { _id: 'sample', _deleted: true } }

export const isDesign = ({ doc }: Sample): boolean => doc._id.startsWith('_design/')
