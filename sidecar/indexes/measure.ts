import type { Couch } from '../couch/client.ts'
import { CouchError } from '../couch/couch-errors.ts'
import { DesignDocsReader } from './design-docs.ts'
import { indexesOf, type Index, type IndexKind } from './indexes-of.ts'
import { kindsOf } from './kinds/kinds.ts'
import type { Kind, Progress } from './kinds/kind.ts'
import { findServer } from './server.ts'

/** `trouble`: why the index could not be read. */
export type Measured = Index & Progress & { readonly trouble?: string }

/**
 * Reads the progress of the indexes of these databases; undefined if the server does not report it. It builds no
 * index. Throws `CouchError`.
 */
export async function measureIndexes(
  couch: Couch,
  databases: Iterable<string>,
  signal: AbortSignal,
): Promise<Measured[] | undefined> {
  const kinds = kindsOf(await findServer(couch, { signal }), { quick: couch, patient: couch })
  if (kinds.view?.reportsProgress === false) return undefined
  const designDocs = new DesignDocsReader(couch)
  const measured: Measured[] = []
  for (const database of databases) {
    const found = await designDocs.read(database, signal)
    if (!found) continue
    const indexes = found.docs.flatMap((doc) => indexesOf(database, doc, Object.keys(kinds) as IndexKind[]))
    for (const index of indexes) {
      measured.push({ ...index, ...(await measure(kinds[index.kind]!, index, found.seq, signal)) })
    }
  }
  return measured
}

async function measure(kind: Kind, index: Index, target: number, signal: AbortSignal) {
  try {
    return await kind.read(index, target, signal)
  } catch (thrown) {
    if (!(thrown instanceof CouchError) || (thrown.retry === 'soon' && thrown.code !== 'server')) throw thrown
    return { seq: 0, lag: target, isRunning: false, trouble: thrown.reason }
  }
}
