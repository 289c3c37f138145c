/** Casts answers to their expected types, because these tests do not test the client. */
import { z } from 'zod'
import type { Couch, CouchRequest } from '../../sidecar/couch/client.ts'
import type { Database, ViewQuery } from '../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'

export const answerOf = <T>(couch: Couch, request: CouchRequest): Promise<T> => couch.request(request) as Promise<T>

export interface Row {
  readonly id: string
  readonly key: unknown
  readonly value: unknown
  readonly doc?: StoredDoc
}

export async function viewOf(db: Database, ddoc: string, view: string, query?: ViewQuery) {
  return { rows: await db.view(ddoc, view, z.custom<Row>(), query) }
}
