import type { CallOptions, Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { OWN_PREFIX } from './staging/copy.ts'

/**
 * The design documents of a database that a folder does not have, as far as one may be made from a folder at all. Not
 * CouchDB's own, not the sidecar's, and no index of Mango: those are made by a request.
 */
export async function findObsolete(
  database: Database,
  wanted: readonly string[],
  options?: CallOptions,
): Promise<StoredDoc[]> {
  const there = await database.withPrefix('_design/', options)
  const ids = there.filter((ddoc) => !wanted.includes(ddoc._id) && !isSpared(ddoc)).map(({ _id }) => _id)
  const found = await Promise.all(ids.map((id) => database.find(id, { attachments: true }, options)))
  return found.filter((ddoc) => ddoc !== undefined)
}

const isSpared = ({ _id, language }: StoredDoc): boolean =>
  _id.startsWith('_design/_') || _id.startsWith(OWN_PREFIX) || _id === '_design/docstate' || language === 'query'
